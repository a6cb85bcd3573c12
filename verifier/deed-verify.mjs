// The second verifier of deed's journal. It is written from the format's description and from the C2SP documents, shares
// nothing with the Go one, and needs nothing but a JavaScript engine: Node 20 or later, or a browser.
//
// It trusts the key or the policy that it is handed, and nothing in the files it reads. It never writes to a file.
//
// Contents: hash, bytes, profile, tree, journal, notes, policy, audit, receipt, command line.

// ---- Hash: SHA-256 (FIPS 180-4), synchronous, since a journal takes one per record and two per leaf of its tree ----

const roundConstants = new Int32Array(64);
const startState = new Int32Array(8);
{
  // The constants are the first 32 bits of the fractions of the cube and square roots of the first primes. The whole part
  // takes at most five bits of a double, so that 48 are left for the fraction.
  const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p !== 0)) primes.push(n);
  primes.forEach((p, i) => {
    roundConstants[i] = fraction(Math.cbrt(p));
    if (i < 8) startState[i] = fraction(Math.sqrt(p));
  });
}

// Scratch, used again by every call; there is one call at a time.
const schedule = new Int32Array(64);
const state = new Int32Array(8);
const block = new Uint8Array(64);

function compress(bytes, at) {
  const w = schedule;
  for (let i = 0; i < 16; i++, at += 4) w[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15];
    const y = w[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
  }
  // One by one: taking the array apart costs more than all rounds.
  let a = state[0];
  let b = state[1];
  let c = state[2];
  let d = state[3];
  let e = state[4];
  let f = state[5];
  let g = state[6];
  let h = state[7];
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + roundConstants[i] + w[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

/** sha256 returns the 32 bytes of the digest of all parts, one after the other. */
export function sha256(...parts) {
  state.set(startState);
  let filled = 0;
  let length = 0;
  for (const part of parts) {
    length += part.length;
    let at = 0;
    if (filled > 0) {
      while (filled < 64 && at < part.length) block[filled++] = part[at++];
      if (filled < 64) continue;
      compress(block, 0);
    }
    for (; at + 64 <= part.length; at += 64) compress(part, at);
    for (filled = 0; at < part.length; ) block[filled++] = part[at++];
  }
  block[filled++] = 0x80;
  if (filled > 56) {
    compress(block.fill(0, filled), 0);
    filled = 0;
  }
  block.fill(0, filled);
  let bits = length * 8; // below 2^53: the length is that of something in memory
  for (let i = 63; i > 56; i--, bits = Math.floor(bits / 256)) block[i] = bits % 256;
  compress(block, 0);
  const digest = new Uint8Array(32);
  for (let i = 0; i < 32; i++) digest[i] = state[i >> 2] >>> (24 - 8 * (i & 3));
  return digest;
}

// The first byte keeps leaves and nodes of the tree apart (RFC 6962 section 2.1).
const leafPrefix = Uint8Array.of(0);
const nodePrefix = Uint8Array.of(1);

/** leafHash is the hash of the record with that body, and its leaf in the tree. */
export const leafHash = (body) => sha256(leafPrefix, body);

const nodeHash = (left, right) => sha256(nodePrefix, left, right);

// ---- Bytes: text, hex and base64 in their one spelling ----

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const toBytes = (text) => new TextEncoder().encode(text);

/** decodeText returns the text of valid UTF-8, and undefined of anything else. */
function decodeText(bytes) {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

// toAscii is for the few bytes of a hash or a time, one by one, which is faster there than a decoder.
function toAscii(bytes, start, end) {
  let text = '';
  for (let i = start; i < end; i++) text += String.fromCharCode(bytes[i]);
  return text;
}

const hexDigits = '0123456789abcdef';

/** toHex returns two lower-case digits for each byte. */
export function toHex(bytes) {
  let text = '';
  for (const b of bytes) text += hexDigits[b >> 4] + hexDigits[b & 15];
  return text;
}

const isHash = (text) => /^[0-9a-f]{64}$/.test(text);
const noHash = '0'.repeat(64);

/** toBase64 is the standard encoding with padding. */
export const toBase64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''));

/** fromBase64 returns undefined unless text is the one spelling of some bytes. */
function fromBase64(text) {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return undefined;
  try {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return toBase64(bytes) === text ? bytes : undefined; // spare bits have to be zero
  } catch {
    return undefined;
  }
}

const sameBytes = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);

/** toCount reads a number of records in its one spelling; undefined for anything else. */
function toCount(text) {
  return /^(0|[1-9][0-9]{0,15})$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

// What C2SP asks of the names of keys and recommends for origins.
const isName = (text) => text !== '' && !/[\p{White_Space}\p{Cc}+]/u.test(text);

// ---- Profile: deed-journal-json/1 ----

const maxBody = 65535;
const maxDepth = 16;
const reserved = new Set(['prev', 'seq', 'v']);

/** Broken carries the rule of the profile that a body breaks, to whoever asked. */
class Broken extends Error {
  constructor(rule, offset) {
    super(`profile rule "${rule}" broken at byte ${offset}`);
    this.rule = rule;
    this.offset = offset;
  }
}

/** readBody checks every rule of the profile. It returns { links: { prev, seq } } or { rule, offset }. */
export function readBody(body) {
  try {
    return { links: new Reader(body).body() };
  } catch (err) {
    if (!(err instanceof Broken)) throw err;
    return { rule: err.rule, offset: err.offset };
  }
}

// Reader is a strict reader of bytes, since JSON.parse forgives double names and loses how numbers were written.
class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  body() {
    const { text } = this;
    if (text.length > maxBody) throw new Broken('size', maxBody);
    if (text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf) this.refuse('encoding');
    this.links = {};
    if (text[0] !== 0x7b) this.unexpected();
    this.object(1);
    if (this.at < text.length) this.unexpected();
    const { prev, seq, v } = this.links;
    if (prev === undefined || seq === undefined || v === undefined) this.refuse('link');
    return { prev, seq };
  }

  refuse(rule, at = this.at) {
    throw new Broken(rule, at);
  }

  unexpected() {
    const c = this.text[this.at];
    this.refuse(c === 0x20 || c === 0x09 || c === 0x0a || c === 0x0d ? 'space' : 'syntax');
  }

  value(depth) {
    switch (this.text[this.at]) {
      case 0x22: // "
        return this.string();
      case 0x7b: // {
        return this.object(depth + 1);
      case 0x5b: // [
        return this.list(depth + 1);
      case 0x74:
        return this.word('true');
      case 0x66:
        return this.word('false');
      case 0x6e: {
        const start = this.at;
        this.word('null');
        return this.refuse('null', start);
      }
      default:
        return this.integer();
    }
  }

  word(letters) {
    for (let i = 0; i < letters.length; i++) if (this.text[this.at + i] !== letters.charCodeAt(i)) this.refuse('syntax');
    this.at += letters.length;
  }

  // items reads what stands between the brackets of a list or an object.
  items(depth, close, item) {
    if (depth > maxDepth) this.refuse('depth');
    this.at++;
    if (this.text[this.at] === close) {
      this.at++;
      return;
    }
    for (;;) {
      item();
      const c = this.text[this.at];
      if (c !== 0x2c && c !== close) this.unexpected();
      this.at++;
      if (c === close) return;
    }
  }

  list(depth) {
    this.items(depth, 0x5d, () => this.value(depth));
  }

  object(depth) {
    let last = '';
    this.items(depth, 0x7d, () => {
      const start = this.at;
      const name = this.name();
      if (name <= last) this.refuse('order', start); // ASCII, so the order of UTF-16 is the order of bytes
      last = name;
      if (depth > 1 && reserved.has(name)) this.refuse('reserved', start);
      if (this.text[this.at] !== 0x3a) this.unexpected();
      this.at++;
      if (depth === 1 && reserved.has(name)) this.link(name);
      else if (name === 'time' || name.endsWith('_at')) this.time();
      else this.value(depth);
    });
  }

  name() {
    if (this.text[this.at] !== 0x22) this.unexpected();
    let name = '';
    for (;;) {
      const c = this.text[++this.at];
      if (c === undefined) this.refuse('syntax');
      const isLetter = c >= 0x61 && c <= 0x7a;
      if (!isLetter && (name === '' || (c !== 0x5f && !(c >= 0x30 && c <= 0x39)))) {
        if (c !== 0x22 || name === '') this.refuse('name');
        this.at++;
        return name;
      }
      name += String.fromCharCode(c);
    }
  }

  // link reads prev, seq or v.
  link(name) {
    const start = this.at;
    const c = this.text[start];
    if (name === 'prev') {
      if (c === 0x22) {
        const text = this.string();
        if (!isHash(text)) this.refuse('link', start);
        this.links.prev = text;
        return;
      }
    } else if (c >= 0x30 && c <= 0x39) {
      const n = this.integer();
      if (name === 'v' && n !== 1) this.refuse('link', start);
      this.links[name] = n;
      return;
    }
    if (c === 0x20 || c === 0x09 || c === 0x0a || c === 0x0d) this.refuse('space');
    this.refuse('link');
  }

  time() {
    const start = this.at;
    const c = this.text[start];
    if (c !== 0x22) this.refuse(c === 0x20 || c === 0x09 || c === 0x0a || c === 0x0d ? 'space' : 'time');
    if (!isTime(this.string())) this.refuse('time', start);
  }

  integer() {
    const { text } = this;
    const start = this.at;
    const negative = text[start] === 0x2d;
    if (negative) this.at++;
    const first = this.at;
    let n = 0;
    while (text[this.at] >= 0x30 && text[this.at] <= 0x39) n = 10 * n + (text[this.at++] - 0x30);
    const digits = this.at - first;
    const next = text[this.at];
    if (digits === 0 && !negative) this.unexpected();
    if (next === 0x2e || next === 0x65 || next === 0x45) this.refuse('number');
    if (digits === 0) this.refuse('syntax');
    // Up to 16 digits n is exact or beyond the limit; a longer one is far beyond it, however it was rounded.
    if (n > Number.MAX_SAFE_INTEGER || (text[first] === 0x30 && (digits > 1 || negative))) this.refuse('number', start);
    return n;
  }

  // string returns the characters between the quotes as they stand there, with escapes unread. Text that is compared
  // with something has none.
  string() {
    const { text } = this;
    const start = ++this.at;
    let ascii = true;
    for (;;) {
      const c = text[this.at];
      if (c === 0x22) break;
      if (c === undefined) this.refuse('syntax');
      else if (c === 0x5c) this.escape();
      else if (c < 0x20) this.refuse('escape');
      else if (c < 0x80) this.at++;
      else {
        ascii = false;
        this.character();
      }
    }
    const end = this.at++;
    if (!ascii || end - start > 64) return ''; // neither a hash nor a time
    return toAscii(text, start, end);
  }

  // escape reads one of the escapes of RFC 8785.
  escape() {
    const { text, at } = this;
    switch (text[at + 1]) {
      case 0x22: // "
      case 0x5c: // \
      case 0x62: // b
      case 0x66: // f
      case 0x6e: // n
      case 0x72: // r
      case 0x74: // t
        this.at += 2;
        return;
    }
    const spelling = toAscii(text, at, Math.min(at + 6, text.length));
    // \b \t \n \f \r have escapes of their own: 08, 09, 0a, 0c, 0d.
    if (!/^\\u00(0[0-7bef]|1[0-9a-f])$/.test(spelling)) this.refuse('escape');
    this.at += 6;
  }

  // character reads one that takes several bytes: RFC 3629, so no surrogates and no longer spelling than needed.
  character() {
    const { text, at } = this;
    const c = text[at];
    let more = 0;
    let low = 0x80;
    let high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf) more = 1;
    else if (c >= 0xe0 && c <= 0xef) {
      more = 2;
      if (c === 0xe0) low = 0xa0;
      if (c === 0xed) high = 0x9f;
    } else if (c >= 0xf0 && c <= 0xf4) {
      more = 3;
      if (c === 0xf0) low = 0x90;
      if (c === 0xf4) high = 0x8f;
    } else this.refuse('encoding');
    for (let i = 1; i <= more; i++) {
      if (!(text[at + i] >= low && text[at + i] <= high)) this.refuse('encoding');
      low = 0x80;
      high = 0xbf;
    }
    this.at += 1 + more;
  }
}

/** isTime accepts 2026-10-05T10:09:57.123456Z: UTC, six decimals, years 0001 to 9999, days that exist. */
function isTime(text) {
  const parts = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})\.\d{6}Z$/.exec(text);
  if (!parts) return false;
  const [year, month, day, hour, minute, second] = parts.slice(1).map(Number);
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  return year > 0 && month > 0 && month < 13 && day > 0 && day <= days[month - 1] && hour < 24 && minute < 60 && second < 60;
}

// Only for bodies that passed readBody: they have one spelling, so that JSON.parse can lose nothing.
const parseBody = (body) => JSON.parse(utf8.decode(body));

// ---- Tree: RFC 6962 section 2.1 ----

/** Tree keeps the roots of the full subtrees that its size is made of, largest first, and nothing else. */
export class Tree {
  /** The subtrees are those of a tree of that size, of which nothing else is known. */
  constructor(size = 0, subtrees = []) {
    if (subtrees.length !== countBits(size)) throw new RangeError('these subtrees do not make a tree of that size');
    this.size = size;
    this.subtrees = [...subtrees];
  }

  push(leaf) {
    let hash = leaf;
    for (let size = this.size; size % 2 === 1; size = (size - 1) / 2) hash = nodeHash(this.subtrees.pop(), hash);
    this.subtrees.push(hash);
    this.size++;
  }

  root() {
    if (this.size === 0) return sha256();
    return this.subtrees.reduceRight((right, left) => nodeHash(left, right));
  }
}

function countBits(n) {
  let bits = 0;
  for (; n > 0; n = Math.floor(n / 2)) bits += n % 2; // no bit operations: they stop at 32
  return bits;
}

/** rootOfProof returns the root that an inclusion proof leads to (RFC 6962 section 2.1.1), or undefined when the proof
 * does not fit the place. */
export function rootOfProof(index, size, leaf, proof) {
  if (!(index < size)) return undefined;
  const hashes = [...proof];
  let last = size - 1;
  let hash = leaf;
  for (; last > 0; index = Math.floor(index / 2), last = Math.floor(last / 2)) {
    if (index % 2 === 0 && index === last) continue; // alone on its level: it moves up as it is
    if (hashes.length === 0) return undefined;
    hash = index % 2 === 1 ? nodeHash(hashes.shift(), hash) : nodeHash(hash, hashes.shift());
  }
  return hashes.length === 0 ? hash : undefined;
}

// ---- Journal: lines, header and chain ----

const lineFeed = 0x0a;
const bodyAt = 65; // of a line: hash SP body LF
const maxLine = bodyAt + maxBody + 1;

/** Journal verifies an export piece by piece and keeps one line of it at most.
 *
 *   const journal = new Journal({ sizes: [700] });
 *   for (each piece of the file) journal.write(bytes);
 *   const result = journal.end();
 *
 * The result has recordsChecked, firstSequence, lastSequence, head (hex), origin, root (bytes, undefined when the header
 * does not let it be computed), roots (a Map from those of the wanted sizes that were passed to the root there), size,
 * start, chain ("valid", "broken", "unchecked") and bad: sequence, reason, and by the reason expected and observed,
 * rule and offset, observedSequence, or tornBytes. It vouches for the records it counts; whether there should be more
 * only a checkpoint tells. */
export class Journal {
  constructor({ sizes = [] } = {}) {
    this.rest = new Uint8Array(0);
    this.header = new Header();
    this.sizes = new Set(sizes);
    this.roots = new Map();
    this.start = 0;
    this.next = 0;
    this.head = noHash;
    this.tree = new Tree();
  }

  write(piece) {
    if (this.bad) return;
    let bytes = piece;
    if (this.rest.length > 0) {
      bytes = new Uint8Array(this.rest.length + piece.length);
      bytes.set(this.rest);
      bytes.set(piece, this.rest.length);
    }
    let at = 0;
    while (!this.bad) {
      const end = bytes.indexOf(lineFeed, at);
      if (end < 0) break;
      this.line(bytes.subarray(at, end + 1));
      at = end + 1;
    }
    this.rest = bytes.slice(at);
    if (!this.bad && this.rest.length >= maxLine) {
      this.begin();
      if (!this.bad) this.refuse('framing'); // longer than any line
    }
  }

  end() {
    if (!this.bad) this.begin();
    if (!this.bad && this.rest.length > 0) this.refuse('torn_tail', { tornBytes: this.rest.length });
    const checked = this.next - this.start;
    const result = {
      origin: this.origin,
      recordsChecked: checked,
      head: this.head,
      root: this.tree?.root(),
      roots: this.roots,
      start: this.start,
      size: this.next,
      chain: this.bad ? 'broken' : checked > 0 ? 'valid' : 'unchecked',
      bad: this.bad,
    };
    if (checked > 0) {
      result.firstSequence = this.start;
      result.lastSequence = this.next - 1;
    }
    return result;
  }

  refuse(reason, more) {
    this.bad = { sequence: this.next, reason, ...more };
  }

  line(line) {
    if (this.header && line[0] === 0x23 && this.header.accept(line)) return;
    this.begin();
    if (!this.bad) this.record(line);
  }

  // begin takes over what the header said, once the header has ended.
  begin() {
    if (!this.header) return;
    const { origin, from, prev, subtrees, isWhole } = this.header.close();
    this.header = undefined;
    this.origin = origin;
    this.start = this.next = from;
    this.head = prev;
    this.tree = subtrees && new Tree(from, subtrees);
    if (!isWhole) this.refuse('framing');
    this.keepRoot();
  }

  record(line) {
    const stated = toAscii(line, 0, Math.min(64, line.length));
    const body = line.subarray(bodyAt, line.length - 1);
    if (line.length <= bodyAt || line.length > maxLine || line[64] !== 0x20 || !isHash(stated)) {
      this.refuse('framing');
      return;
    }
    const leaf = leafHash(body);
    const computed = toHex(leaf);
    if (computed !== stated) {
      this.refuse('content', { expected: stated, observed: computed });
      return;
    }
    const { links, rule, offset } = readBody(body);
    if (rule) this.refuse('profile', { rule, offset });
    else if (links.prev !== this.head) this.refuse('predecessor', { expected: this.head, observed: links.prev });
    else if (links.seq !== this.next) this.refuse('sequence', { observedSequence: links.seq });
    else if (this.next === 0 && !this.open(body)) this.refuse('profile', { rule: 'opening', offset: 0 });
    if (this.bad) return;
    this.tree?.push(leaf);
    this.next++;
    this.head = stated;
    this.keepRoot();
  }

  // open reads record 0, which binds all later ones to one journal.
  open(body) {
    const { event, format, origin } = parseBody(body);
    if (event !== 'journal.opened' || format !== 'deed-journal-json/1') return false;
    if (typeof origin !== 'string' || !isName(origin) || (this.origin !== undefined && this.origin !== origin)) return false;
    this.origin = origin;
    return true;
  }

  keepRoot() {
    if (this.tree && this.sizes.has(this.next)) this.roots.set(this.next, this.tree.root());
  }
}

const headerWords = ['#deed-journal/v1', '#from', '#prev', '#range'];

// Header is what stands before the first record of an export that does not start at record 0. It needs no trust: if it
// lies, the root is not that of any checkpoint.
class Header {
  constructor() {
    this.seen = [];
    this.values = {};
  }

  // accept says whether the line is a header line at its place. Each stands there once at most, in this order, and there
  // are no comments: a record whose first byte became a # must not be passed over.
  accept(line) {
    const end = line.length - 1;
    const space = line.indexOf(0x20);
    const cut = space < 0 ? end : space;
    const word = toAscii(line, 0, cut);
    const place = headerWords.indexOf(word);
    if (place < 0 || this.seen.some((p) => p >= place)) return false;
    this.seen.push(place);
    const value = decodeText(line.subarray(Math.min(cut + 1, end), end)) ?? '';
    this.values[word] = [isName(value) ? value : undefined, toCount(value), isHash(value) ? value : undefined, toHashes(value)][place];
    return this.values[word] !== undefined;
  }

  // close says where the records begin. A header that is incomplete or contradicts itself is good for naming the place.
  close() {
    const from = this.values['#from'] ?? 0;
    const prev = this.values['#prev'] ?? noHash;
    const range = this.values['#range'];
    const origin = this.values['#deed-journal/v1'];
    const [hasFrom, hasPrev, hasRange] = [1, 2, 3].map((place) => this.seen.includes(place));
    const place = { from, prev: noHash, subtrees: hasFrom || hasPrev || hasRange ? undefined : [], isWhole: false };
    if (hasFrom !== hasPrev || (hasRange && !hasFrom) || (from === 0 && prev !== noHash)) return place;
    if (range && range.length !== countBits(from)) return place;
    return { origin, from, prev, subtrees: from === 0 && !hasRange ? [] : range, isWhole: true };
  }
}

// toHashes reads hashes in base64 with one space between two.
function toHashes(text) {
  const hashes = text.split(' ').map(fromBase64);
  return hashes.every((h) => h?.length === 32) ? hashes : undefined;
}

// ---- Notes: C2SP signed-note, tlog-checkpoint, tlog-cosignature ----

const maxNote = 1_000_000; // bytes
const logKind = 1; // Ed25519 over the text of the note
const witnessKind = 4; // Ed25519 over the text and a time: cosignature/v1

const noEd25519 = 'this program has no Ed25519, so no signature was checked; use Node 20 or a browser of 2025 or later';

// Unsupported says that this engine has no Ed25519, so that nothing is known of a signature.
class Unsupported extends Error {
  constructor() {
    super(noEd25519);
  }
}

/** parseKey reads a key in the note form name+hash+base64. It throws an Error that says what is wrong. */
export function parseKey(vkey) {
  const [name, id, ...rest] = vkey.split('+');
  const encoded = fromBase64(rest.join('+')); // base64 has a plus of its own
  if (!isName(name) || !/^[0-9a-f]{8}$/.test(id ?? '') || !encoded?.length) throw new Error('not a key of the form name+hash+base64');
  if (toHex(sha256(toBytes(`${name}\n`), encoded).subarray(0, 4)) !== id) throw new Error(`the key of ${name} does not have the hash that it states`);
  const kind = encoded[0];
  if (kind !== logKind && kind !== witnessKind) throw new Error(`the key of ${name} is of a kind that this program cannot check (${kind})`);
  if (encoded.length !== 33) throw new Error(`the key of ${name} is not 32 bytes long`);
  return { name, id, kind, key: encoded.subarray(1) };
}

/** parseNote takes a signed note apart. It throws an Error that says what is wrong, and checks no signature. */
export function parseNote(bytes) {
  if (bytes.length > maxNote) throw new Error('the note is longer than 1 MB');
  const whole = decodeText(bytes);
  if (whole === undefined) throw new Error('the note is not valid UTF-8');
  if (/[\x00-\x09\x0b-\x1f]/.test(whole)) throw new Error('the note holds a control character');
  const cut = whole.lastIndexOf('\n\n');
  if (cut < 0) throw new Error('no empty line stands before the signatures');
  const lines = whole.slice(cut + 2).split('\n');
  if (lines.pop() !== '' || lines.length === 0) throw new Error('the note does not end with a line of a signature');
  if (lines.length > 100) throw new Error('the note has more than 100 signatures');
  const signatures = lines.map((line) => {
    const [dash, name, encoded, ...rest] = line.split(' ');
    const decoded = fromBase64(encoded ?? '');
    if (dash !== '\u2014' || !isName(name ?? '') || rest.length > 0 || !(decoded?.length > 4)) throw new Error('a line of a signature is malformed');
    return { name, id: toHex(decoded.subarray(0, 4)), signature: decoded.subarray(4) };
  });
  return { text: whole.slice(0, cut + 1), signatures };
}

/** parseCheckpoint reads the text of a note as a checkpoint: origin, size and root. */
export function parseCheckpoint(text) {
  const lines = text.split('\n');
  if (lines.pop() !== '' || lines.length < 3 || lines.includes('')) throw new Error('a checkpoint has three lines or more and none is empty');
  const [origin, count, encoded] = lines;
  const size = toCount(count);
  const root = fromBase64(encoded);
  if (size === undefined) throw new Error('the size of the checkpoint is malformed');
  if (root?.length !== 32) throw new Error('the root of the checkpoint is malformed');
  return { origin, size, root };
}

async function isSignedBy(key, text, signature) {
  let message = toBytes(text);
  if (key.kind === witnessKind) {
    if (signature.length !== 72) return false;
    const time = new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
    if (time >= 2n ** 63n) return false;
    message = toBytes(`cosignature/v1\ntime ${time}\n${text}`);
    signature = signature.subarray(8);
  }
  if (signature.length !== 64) return false;
  // Node 18 has it in a module only.
  const { subtle } = globalThis.crypto ?? (await import('node:crypto').catch(() => ({}))).webcrypto ?? {};
  if (!subtle) throw new Unsupported();
  try {
    const imported = await subtle.importKey('raw', key.key, 'Ed25519', false, ['verify']);
    return await subtle.verify('Ed25519', imported, signature, message);
  } catch (err) {
    if (err.name === 'DataError' || err.name === 'OperationError') return false; // no point of the curve
    throw new Unsupported();
  }
}

/** checkCheckpoint says what a checkpoint is worth under a trust: { logs, witnesses, quorum }, as trustOf returns it.
 * The answer has verdict: "valid", "invalid" or "unchecked"; why, unless it is valid; origin, size and root as far as they
 * could be read; and, when it is valid, signers (keys) and hasQuorum. */
export async function checkCheckpoint(bytes, trust) {
  let answer = {};
  try {
    const note = parseNote(bytes);
    answer = parseCheckpoint(note.text);
    if (trust.logs.length === 0) return { ...answer, verdict: 'unchecked', why: 'no key was given' };
    const known = [...trust.logs.filter((log) => log.name === answer.origin), ...trust.witnesses];
    const signers = new Set();
    for (const { name, id, signature } of note.signatures) {
      const key = known.find((k) => k.name === name && k.id === id);
      if (!key) continue; // of nobody we know: it says nothing
      if (!(await isSignedBy(key, note.text, signature))) throw new Error(`the signature of ${name} is wrong`);
      signers.add(key);
    }
    if (!trust.logs.some((log) => signers.has(log))) throw new Error(`no known log named ${answer.origin} signed it`);
    return { ...answer, verdict: 'valid', signers: [...signers], hasQuorum: trust.quorum(signers) };
  } catch (err) {
    return { ...answer, verdict: err instanceof Unsupported ? 'unchecked' : 'invalid', why: err.message };
  }
}

// ---- Policy: C2SP tlog-policy ----

/** parsePolicy reads a policy file. It throws an Error that names the line. The answer has logs, witnesses and quorum, a
 * function from the Set of keys that signed to whether they are enough. */
export function parsePolicy(bytes) {
  const policy = { logs: [], witnesses: [], quorum: undefined };
  const voters = new Map(); // name to whether the signers witness it
  const members = new Set();
  if (bytes.length > maxNote) throw new Error('the policy is longer than 1 MB');
  // Names are opaque bytes; so every byte becomes one character.
  const lines = Array.from(bytes, (b) => String.fromCharCode(b)).join('').split('\n');
  if (lines.pop() !== '') throw new Error(`line ${lines.length + 1} of the policy: the last line does not end with a line feed`);
  lines.forEach((line, i) => {
    const check = (ok, problem) => {
      if (!ok) throw new Error(`line ${i + 1} of the policy: ${problem}`);
    };
    const define = (name, voter) => {
      check(name !== 'none' && !voters.has(name), 'this name is taken');
      voters.set(name, voter);
    };
    const keyOf = (vkey, kind, list) => {
      let key;
      try {
        key = parseKey(decodeText(Uint8Array.from(vkey, (c) => c.charCodeAt(0))) ?? '');
      } catch (err) {
        check(false, err.message);
      }
      check(key.kind === kind, `this is not the key of a ${kind === logKind ? 'log' : 'witness'}`);
      check(!list.some((other) => sameBytes(other.key, key.key)), 'this key stands there twice');
      list.push(key);
      return key;
    };
    check(!/[\x00-\x08\x0b-\x1f\x7f]/.test(line), 'a control character');
    const [word, ...values] = line.split(/[ \t]+/).filter((v) => v !== '');
    if (word === undefined || word.startsWith('#')) return;
    switch (word) {
      case 'log':
        check(values.length === 1 || values.length === 2, 'not of the form: log <vkey> [<url>]');
        keyOf(values[0], logKind, policy.logs);
        return;
      case 'witness': {
        check(values.length === 2 || values.length === 3, 'not of the form: witness <name> <vkey> [<url>]');
        const key = keyOf(values[1], witnessKind, policy.witnesses);
        define(values[0], (signers) => signers.has(key));
        return;
      }
      case 'group': {
        const [name, threshold, ...names] = values;
        check(names.length > 0, 'not of the form: group <name> all|any|<k> <name>...');
        const needed = { all: names.length, any: 1 }[threshold] ?? toCount(threshold);
        check(needed >= 1 && needed <= names.length, `the number has to be from 1 to ${names.length}`);
        const votes = names.map((member) => {
          check(voters.has(member), 'a member is not defined before');
          check(!members.has(member), 'a member counts twice');
          members.add(member);
          return voters.get(member);
        });
        define(name, (signers) => votes.filter((vote) => vote(signers)).length >= needed);
        return;
      }
      case 'quorum':
        check(values.length === 1, 'not of the form: quorum <name>');
        check(!policy.quorum, 'a second quorum');
        check(values[0] === 'none' || voters.has(values[0]), 'the quorum is not defined before');
        policy.asksForWitnesses = values[0] !== 'none';
        policy.quorum = policy.asksForWitnesses ? voters.get(values[0]) : () => true;
        return;
    }
    check(false, 'it begins with none of log, witness, group, quorum');
  });
  if (!policy.quorum) throw new Error('the policy has no quorum line');
  return policy;
}

/** trustOf makes a trust of vkeys and a policy file (bytes), each of which may be left out. Keys that are named stand in
 * the place of the policy's logs; they never add to them. It throws an Error that says what is wrong. */
export function trustOf(vkeys, policyFile) {
  const policy = policyFile ? parsePolicy(policyFile) : { logs: [], witnesses: [], quorum: () => true, asksForWitnesses: false };
  const logs = vkeys.map(parseKey);
  if (logs.some((key) => key.kind !== logKind)) throw new Error('a key given is not the key of a log');
  return logs.length > 0 ? { ...policy, logs } : policy;
}

// ---- Audit: what a run says, and its exit code ----

/** report makes the lines and the exit code out of the result of a Journal and what checkCheckpoint said of each
 * checkpoint; the Journal was told their sizes, and the one that lay beside the file has beside set to true. explained
 * says in sentences what the run did and did not prove. */
export function report(result, checkpoints, trust) {
  const held = checkpoints.map((c) => ({ ...c, kind: kindOf(c, result) }));
  const signature = signatureOf(held, trust);
  const anchoring = anchoringOf(held, trust);
  const lines = [`records_checked: ${result.recordsChecked}`];
  if (result.recordsChecked > 0) lines.push(`first_sequence: ${result.firstSequence}`, `last_sequence: ${result.lastSequence}`);
  lines.push(`chain: ${result.chain}`);
  if (result.bad) lines.push(...damageLines(result.bad));
  lines.push(lineOf('signature', signature, result));
  if (anchoring && lineOf('anchoring', anchoring, result) !== lines.at(-1)) lines.push(lineOf('anchoring', anchoring, result));
  const codes = [exitOf(signature, result), anchoring ? exitOf(anchoring, result) : 0, { valid: 0, broken: 1, unchecked: 2 }[result.chain]];
  return { exit: [1, 2, 3].find((code) => codes.includes(code)) ?? 0, lines, explained: explain(result, held, anchoring) };
}

// kindOf says what a checkpoint and the file say of each other: invalid, unchecked, covered, truncated or differs.
function kindOf(checkpoint, { origin, start, size, roots, root, bad }) {
  if (checkpoint.verdict === 'invalid' || (origin !== undefined && checkpoint.origin !== origin)) return 'invalid';
  if (checkpoint.size > size) return !bad || bad.reason === 'torn_tail' ? 'truncated' : 'unchecked';
  if (checkpoint.size < start || !root || !roots.has(checkpoint.size)) return 'unchecked';
  return sameBytes(roots.get(checkpoint.size), checkpoint.root) ? 'covered' : 'differs';
}

const isWrong = (checkpoint) => ['invalid', 'truncated', 'differs'].includes(checkpoint.kind);
const newestOf = (list) => list.reduce((newest, c) => (newest && newest.size >= c.size ? newest : c), undefined);

// signatureOf judges the checkpoint beside the file; one that was kept elsewhere is as good where it covers more.
function signatureOf(held, trust) {
  const beside = held.find((c) => c.beside);
  if (beside && isWrong(beside)) return beside;
  const newest = newestOf(held.filter((c) => c.kind === 'covered' && c.verdict === 'valid'));
  if (newest) return { ...newest, isRequired: true };
  return { kind: beside || (held.length > 0 && trust.logs.length === 0) ? 'unchecked' : 'absent', why: beside?.why };
}

// anchoringOf judges what outsiders hold: what was kept elsewhere, or, where the policy asks for witnesses, what enough of
// them have signed. It is undefined when nobody asked.
function anchoringOf(held, trust) {
  const isRequired = trust.asksForWitnesses;
  const kept = held.filter((c) => !c.beside);
  if (kept.length === 0 && !isRequired) return undefined;
  // Other records tell more than fewer records: the earliest that differs, then the largest that was cut.
  const differs = kept.filter((c) => c.kind === 'differs').sort((a, b) => a.size - b.size)[0];
  const wrong = differs ?? newestOf(kept.filter((c) => c.kind === 'truncated')) ?? kept.find((c) => c.kind === 'invalid');
  if (wrong) return wrong;
  const counting = isRequired ? held.filter((c) => c.hasQuorum) : kept;
  const newest = newestOf(counting.filter((c) => c.kind === 'covered'));
  if (newest) return { ...newest, isRequired };
  return { kind: counting.some((c) => c.kind === 'unchecked') ? 'unchecked' : 'absent' };
}

function exitOf(finding, { size: end }) {
  if (isWrong(finding)) return 1;
  if (finding.kind !== 'covered') return 2;
  return finding.isRequired && finding.size < end ? 3 : 0;
}

function lineOf(name, finding, { size: end }) {
  const count = (n) => `${n} record${n === 1 ? '' : 's'}`;
  switch (finding.kind) {
    case 'truncated':
      return `truncated: checkpoint has ${finding.size}, file ends at ${end}`;
    case 'differs':
      return `root differs at ${finding.size}`;
    case 'unchecked':
      return `${name}: unchecked${finding.why === noEd25519 ? ', this program has no Ed25519' : ''}`;
    case 'covered':
      if (finding.size === end) return `${name}: valid`;
      if (finding.size === 0) return `${name}: valid for no record, ${count(end)} not anchored`;
      return `${name}: valid to ${finding.size - 1}, ${count(end - finding.size)} not anchored`;
  }
  return `${name}: ${finding.kind}`;
}

function damageLines(bad) {
  const lines = [`first_bad_sequence: ${bad.sequence}`, `reason: ${bad.reason}`];
  switch (bad.reason) {
    case 'predecessor':
      return [...lines, `expected_predecessor: ${bad.expected}`, `observed_predecessor: ${bad.observed}`];
    case 'content':
      return [...lines, `expected_hash: ${bad.expected}`, `observed_hash: ${bad.observed}`];
    case 'sequence':
      return [...lines, `expected_sequence: ${bad.sequence}`, `observed_sequence: ${bad.observedSequence}`];
    case 'profile':
      return [...lines, `rule: ${bad.rule}`];
    case 'torn_tail':
      return [...lines, `torn_tail: ${bad.tornBytes} bytes`];
  }
  return lines;
}

function explain(result, held, anchoring) {
  const said = ['The chain shows that the records follow one another. It cannot show that none is missing at the end, or that the file is the one that was written.'];
  if (result.bad) said.push(`Every record before ${result.bad.sequence} is in order. Nothing after it was checked.`);
  if (held.length === 0) said.push('There is no checkpoint, so nothing says who wrote the file or how long it should be.');
  for (const c of held) {
    const name = c.beside ? 'The checkpoint beside the file' : 'A checkpoint that was kept';
    if (c.kind === 'invalid') said.push(`${name} is refused: ${c.why ?? `it is of ${c.origin}, and the journal is ${result.origin}`}.`);
    else if (c.kind === 'truncated') said.push(`${name} is of ${c.size} records. Those after ${result.size} are not in the file.`);
    else if (c.kind === 'differs') said.push(`${name} is of another history of the first ${c.size} records.`);
    else if (c.verdict === 'unchecked') said.push(`${name} is not checked: ${c.why}. Nothing inside a journal is believed about its own keys.`);
    else if (c.kind === 'unchecked') said.push(`${name} is of ${c.size} records and cannot be compared: the file begins at ${result.start}${result.root ? '' : ' without #range'}.`);
    else said.push(`${name} says that the log signed exactly these first ${c.size} records.`);
  }
  if (!anchoring) said.push('Nothing shows that anybody outside has seen the records. Whoever holds the key of the log could have signed another history; a checkpoint that was kept elsewhere, or a policy with witnesses, would show it.');
  said.push('No verification can show an action that was never written, or that a decision was right.');
  return said;
}

// ---- Receipt: C2SP tlog-proof, whose extra holds the events of one action, newest first ----

const proofLine = 'c2sp.org/tlog-proof@v1';

/** parseReceipt takes a receipt apart. It throws an Error that says what is wrong, and believes nothing. */
export function parseReceipt(bytes) {
  const text = decodeText(bytes);
  if (text === undefined) throw new Error('the receipt is not valid UTF-8');
  const cut = text.indexOf('\n\n');
  if (cut < 0) throw new Error('no empty line stands before the checkpoint');
  const [first, extra, place, ...proof] = text.slice(0, cut).split('\n');
  if (first !== proofLine) throw new Error(`the first line is not ${proofLine}`);
  const bodies = extra?.startsWith('extra ') ? fromBase64(extra.slice('extra '.length)) : undefined;
  if (!bodies?.length) throw new Error('the second line is not extra with the events');
  const index = place?.startsWith('index ') ? toCount(place.slice('index '.length)) : undefined;
  if (index === undefined) throw new Error('the third line is not index with a number');
  const hashes = proof.map(fromBase64);
  if (hashes.length > 63 || hashes.some((h) => h?.length !== 32)) throw new Error('the hashes of the proof are malformed');
  return { bodies: splitLines(bodies), index, proof: hashes, checkpoint: toBytes(text.slice(cut + 2)) };
}

function splitLines(bytes) {
  const lines = [];
  for (let at = 0; ; ) {
    const end = bytes.indexOf(lineFeed, at);
    if (end < 0) return [...lines, bytes.subarray(at)];
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
}

class Unchecked extends Error {}

class Refused extends Error {
  constructor(reason, why) {
    super(why);
    this.reason = reason;
  }
}

/** checkReceipt checks a receipt under a trust. The answer has verdict: "valid", "invalid" or "unchecked"; reason (malformed,
 * checkpoint, profile, index, inclusion, after, action) and why, unless it is valid; and when it is valid, events,
 * oldest first, each with hash, body (text) and fields, and checkpoint, as checkCheckpoint returns it.
 * The extra data of a proof is signed by nobody. Its first body is believed since its hash is in the tree that the log
 * signed, and every other one since the one before it, which is believed already, names its hash. */
export async function checkReceipt(bytes, trust) {
  try {
    return { verdict: 'valid', ...(await openReceipt(bytes, trust)) };
  } catch (err) {
    if (err instanceof Unchecked) return { verdict: 'unchecked', why: err.message };
    return { verdict: 'invalid', reason: err instanceof Refused ? err.reason : 'malformed', why: err.message };
  }
}

async function openReceipt(bytes, trust) {
  const receipt = parseReceipt(bytes);
  const checkpoint = await checkCheckpoint(receipt.checkpoint, trust);
  if (checkpoint.verdict === 'unchecked') throw new Unchecked(checkpoint.why);
  if (checkpoint.verdict !== 'valid') throw new Refused('checkpoint', checkpoint.why);
  if (!checkpoint.hasQuorum) throw new Refused('checkpoint', 'not enough of the witnesses that the policy asks for saw it');

  const events = [];
  let expected;
  receipt.bodies.forEach((body, i) => {
    const place = `event ${i + 1} from the newest`;
    const { links, rule, offset } = readBody(body);
    if (rule) throw new Refused('profile', `${place} breaks the profile rule "${rule}" at byte ${offset}`);
    const leaf = leafHash(body);
    const hash = toHex(leaf);
    const newer = events[0];
    if (!newer) {
      if (links.seq !== receipt.index) throw new Refused('index', `the newest event is record ${links.seq}, and the receipt says ${receipt.index}`);
      const root = rootOfProof(receipt.index, checkpoint.size, leaf, receipt.proof);
      if (!root || !sameBytes(root, checkpoint.root)) throw new Refused('inclusion', 'the newest event is not in the tree that the log signed');
    } else {
      if (expected === undefined) throw new Refused('after', 'events stand after the first one of the action');
      if (hash !== expected) throw new Refused('after', `${place} is not the one that the next event names: expected ${expected}, observed ${hash}`);
      if (links.seq >= newer.seq) throw new Refused('after', `${place} is record ${links.seq}, which is no earlier one`);
    }
    const fields = parseBody(body);
    if (newer && (fields.action_id === undefined || fields.action_id !== newer.fields.action_id)) throw new Refused('action', `${place} is of another action`);
    if (fields.after !== undefined && !isHash(fields.after)) throw new Refused('after', `${place} names no hash`);
    expected = fields.after;
    events.unshift({ seq: links.seq, hash, body: utf8.decode(body), fields });
  });
  if (expected !== undefined) throw new Refused('after', `the event before the oldest is missing: expected ${expected}, observed nothing`);
  return { events, checkpoint };
}

/** receiptReport makes the lines and the exit code out of what checkReceipt said. */
export function receiptReport(receipt) {
  if (receipt.verdict === 'unchecked') return { exit: 2, lines: ['receipt: unchecked'], explained: [`Nothing is known of the receipt: ${receipt.why}.`] };
  if (receipt.verdict === 'invalid') return { exit: 1, lines: ['receipt: invalid', `reason: ${receipt.reason}`], explained: [`Refused: ${receipt.why}.`] };
  const { events, checkpoint } = receipt;
  return {
    exit: 0,
    lines: ['receipt: valid', `events: ${events.length}`, `first_sequence: ${events[0].seq}`, `last_sequence: ${events.at(-1).seq}`, 'signature: valid'],
    explained: [
      `These events are records of ${checkpoint.origin}, which had ${checkpoint.size} records when the log signed, and none is missing between the first and the newest of them.`,
      'The action may have had later events: a receipt cannot show what came after it. It does not show that a decision was right.',
    ],
  };
}

// ---- Command line ----

const usage = `usage: node deed-verify.mjs <journal.events> [--checkpoint <file>]... [--key <vkey>]... [--policy <file>] [--explain]
       node deed-verify.mjs --receipt <file> [--key <vkey>]... [--policy <file>] [--explain]

The checkpoint beside the journal, <journal.events>.checkpoint, is read when it is there. Files are only read.

exit codes: 0 valid   1 damaged, cut, rewritten or wrongly signed   2 something was not checked
            3 valid, and not all of it anchored   4 unreadable`;

// The two ways to fail before there is a verdict.
class Unreadable extends Error {}
class Misused extends Error {}

function readArguments(args) {
  const options = { checkpoint: [], key: [], policy: [], receipt: [], file: [], explain: false };
  for (let i = 0; i < args.length; i++) {
    if (args[i] === '--explain') options.explain = true;
    else if (!args[i].startsWith('-')) options.file.push(args[i]);
    else {
      const list = { '--checkpoint': 'checkpoint', '--key': 'key', '--policy': 'policy', '--receipt': 'receipt' }[args[i]];
      if (!list) throw new Misused(`unknown option ${args[i]}`);
      if (++i === args.length) throw new Misused(`${args[i - 1]} needs a value`);
      options[list].push(args[i]);
    }
  }
  if (options.policy.length > 1 || options.file.length + options.receipt.length !== 1) throw new Misused('one journal or one receipt, and one policy at most');
  if (options.receipt.length > 0 && options.checkpoint.length > 0) throw new Misused('a receipt holds its own checkpoint');
  return options;
}

async function run(args) {
  const { readFile } = await import('node:fs/promises');
  const read = async (file) => {
    try {
      return new Uint8Array(await readFile(file));
    } catch (err) {
      throw new Unreadable(err.message);
    }
  };
  const options = readArguments(args);
  const policy = options.policy.length > 0 ? await read(options.policy[0]) : undefined;
  let trust;
  try {
    trust = trustOf(options.key, policy);
  } catch (err) {
    throw new Misused(err.message);
  }
  let said;
  if (options.receipt.length > 0) {
    said = receiptReport(await checkReceipt(await read(options.receipt[0]), trust));
  } else {
    const [file] = options.file;
    // Checkpoints first: a journal that grows meanwhile is longer than they say, and never looks cut.
    const notes = await Promise.all(options.checkpoint.map(read));
    const beside = await readFile(`${file}.checkpoint`).catch((err) => {
      if (err.code !== 'ENOENT') throw new Unreadable(err.message);
    });
    if (beside) notes.push(new Uint8Array(beside));
    const checkpoints = await Promise.all(notes.map((note) => checkCheckpoint(note, trust)));
    if (beside) checkpoints.at(-1).beside = true;
    said = report(await verifyFile(file, checkpoints), checkpoints, trust);
  }
  // What an explanation quotes may come from a file of anybody.
  const explained = said.explained.map((line) => line.replace(/[\p{Cc}\p{Cf}]/gu, '?'));
  return { lines: options.explain ? [...said.lines, '', ...explained] : said.lines, exit: said.exit };
}

async function verifyFile(file, checkpoints) {
  const { createReadStream } = await import('node:fs');
  const journal = new Journal({ sizes: checkpoints.map((c) => c.size) });
  try {
    for await (const piece of createReadStream(file, { highWaterMark: 2 ** 18 })) {
      journal.write(piece);
      if (journal.bad) break;
    }
  } catch (err) {
    if (err.syscall === undefined) throw err;
    throw new Unreadable(err.message);
  }
  return journal.end();
}

async function main() {
  try {
    const { lines, exit } = await run(process.argv.slice(2));
    console.log(lines.join('\n'));
    process.exitCode = exit;
  } catch (err) {
    process.exitCode = 4;
    if (err instanceof Unreadable) console.log(`unreadable: ${err.message}`);
    else if (err instanceof Misused) console.error(`${err.message}\n${usage}`);
    else console.error(err); // a bug of this program, which is no verdict
  }
}

// Run when this file is the program, and not when a page or a test takes functions from it.
if (typeof process === 'object' && process.versions?.node && process.argv[1]) {
  const [{ realpathSync }, { pathToFileURL }] = await Promise.all([import('node:fs'), import('node:url')]);
  if (import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) await main();
}
