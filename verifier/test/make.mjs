// Journals, trees, keys, notes and receipts for the tests, made with node:crypto and the definitions themselves, so that
// the verifier is not held against its own code.
import { createHash, generateKeyPairSync, sign } from 'node:crypto';

export const sum = (...parts) => createHash('sha256').update(Buffer.concat(parts.map((p) => Buffer.from(p)))).digest();

/** makeJournal returns n records; every third one belongs to the action act_1, linked by after. */
export function makeJournal(n, origin = 'gw.example/audit/js') {
  const made = { origin, bodies: [], hashes: [], lines: [] };
  let prev = '0'.repeat(64);
  let after;
  for (let seq = 0; seq < n; seq++) {
    const fields = { prev, seq, v: 1, event: 'action.planned', time: '2026-10-05T10:09:57.123456Z', note: `é ${seq}` };
    if (seq === 0) Object.assign(fields, { event: 'journal.opened', format: 'deed-journal-json/1', origin });
    else if (seq % 3 === 0) Object.assign(fields, { action_id: 'act_1', ...(after && { after }) });
    const body = encode(fields);
    prev = sum([0], body).toString('hex');
    if (seq > 0 && seq % 3 === 0) after = prev;
    made.bodies.push(body);
    made.hashes.push(prev);
    made.lines.push(`${prev} ${body}\n`);
  }
  return made;
}

/** encode is good enough for flat members. */
export const encode = (fields) => Buffer.from(JSON.stringify(Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)))));

const split = (n) => {
  let k = 1;
  while (2 * k < n) k *= 2;
  return k;
};

/** definitionOfRoot is RFC 6962 section 2.1 word for word. */
export function definitionOfRoot(bodies) {
  if (bodies.length === 0) return sum();
  if (bodies.length === 1) return sum([0], bodies[0]);
  const k = split(bodies.length);
  return sum([1], definitionOfRoot(bodies.slice(0, k)), definitionOfRoot(bodies.slice(k)));
}

/** definitionOfProof is PATH of RFC 6962 section 2.1.1 word for word. */
export function definitionOfProof(m, bodies) {
  if (bodies.length <= 1) return [];
  const k = split(bodies.length);
  if (m < k) return [...definitionOfProof(m, bodies.slice(0, k)), definitionOfRoot(bodies.slice(k))];
  return [...definitionOfProof(m - k, bodies.slice(k)), definitionOfRoot(bodies.slice(0, k))];
}

/** makeKey returns a key pair with its name, vkey and a function that signs a note's text and returns the line.
 * kind 1 is a log's key, 4 a witness's. */
export function makeKey(name, kind = 1) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const id = sum(name, '\n', [kind], raw).subarray(0, 4);
  const vkey = `${name}+${id.toString('hex')}+${Buffer.from([kind, ...raw]).toString('base64')}`;
  const line = (signature) => `\u2014 ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;
  const signText = (text, time = 1_760_000_000) => {
    if (kind === 1) return line(sign(null, Buffer.from(text), privateKey));
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(time));
    return line(Buffer.concat([stamp, sign(null, Buffer.from(`cosignature/v1\ntime ${time}\n${text}`), privateKey)]));
  };
  return { name, vkey, raw, id, sign: signText };
}

/** makeCheckpoint signs the first size records with every key. */
export function makeCheckpoint(journal, size, keys, { origin = journal.origin, root, extra = '' } = {}) {
  const hash = root ?? definitionOfRoot(journal.bodies.slice(0, size));
  const text = `${origin}\n${size}\n${hash.toString('base64')}\n${extra}`;
  return `${text}\n${keys.map((k) => k.sign(text)).join('')}`;
}

/** makeReceipt is the receipt of the bodies at these indexes, newest first. */
export function makeReceipt(journal, indexes, size, keys) {
  const extra = Buffer.from(indexes.map((i) => journal.bodies[i].toString()).join('\n'));
  const proof = definitionOfProof(indexes[0], journal.bodies.slice(0, size));
  return [
    'c2sp.org/tlog-proof@v1',
    `extra ${extra.toString('base64')}`,
    `index ${indexes[0]}`,
    ...proof.map((h) => h.toString('base64')),
    '',
    makeCheckpoint(journal, size, keys),
  ].join('\n');
}
