import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Journal, Tree, leafHash, readBody, rootOfProof, sha256, toBase64, toHex } from '../deed-verify.mjs';
import { definitionOfProof, definitionOfRoot, makeJournal } from './make.mjs';

const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

test('SHA-256 is that of node:crypto and WebCrypto at every length up to three blocks, and for large parts', async () => {
  const { webcrypto } = await import('node:crypto');
  for (const size of [...Array(200).keys(), 65535, 65536, 1_000_003]) {
    const bytes = randomBytes(size);
    assert.equal(toHex(sha256(bytes)), digest(bytes), `${size} bytes`);
    const cut = Math.floor(size / 3);
    assert.equal(toHex(sha256(bytes.subarray(0, cut), bytes.subarray(cut, 2 * cut), bytes.subarray(2 * cut))), digest(bytes), `${size} bytes in parts`);
  }
  const bytes = randomBytes(1000);
  assert.equal(toHex(sha256(bytes)), toHex(new Uint8Array(await webcrypto.subtle.digest('SHA-256', bytes))));
});

// AU-05: the vectors run in a second implementation; equal verdicts and hashes.
const vectors = JSON.parse(readFileSync(new URL('../../docs/vectors/journal.json', import.meta.url)));

test('vectors of bodies', () => {
  assert.ok(vectors.bodies.length > 100);
  for (const v of vectors.bodies) {
    const body = v.body_base64 === undefined ? new TextEncoder().encode(v.body) : new Uint8Array(Buffer.from(v.body_base64, 'base64'));
    assert.equal(readBody(body).rule, v.refused, v.name);
    if (v.hash !== undefined) assert.equal(toHex(leafHash(body)), v.hash, v.name);
  }
});

test('vectors of journals', () => {
  assert.ok(vectors.journals.length > 30);
  for (const v of vectors.journals) {
    const bytes = new TextEncoder().encode(v.lines);
    for (const step of [1, 7, 1000, bytes.length + 1]) {
      const journal = new Journal();
      for (let at = 0; at < bytes.length; at += step) journal.write(bytes.subarray(at, at + step));
      const got = journal.end();
      const want = v.result;
      const what = `${v.name}, ${step} bytes at a time`;
      assert.equal(got.recordsChecked, want.records_checked, what);
      assert.equal(got.firstSequence ?? 0, want.first_sequence ?? 0, what);
      assert.equal(got.lastSequence ?? 0, want.last_sequence ?? 0, what);
      assert.equal(got.head, want.head, what);
      assert.equal(got.root && toBase64(got.root), want.root, what);
      assert.equal(got.chain, want.chain, what);
      assert.equal(got.bad?.sequence, want.bad?.sequence, what);
      assert.equal(got.bad?.reason, want.bad?.reason, what);
      assert.equal(got.bad?.rule, want.bad?.rule, what);
      if (want.bad?.expected) assert.deepEqual([got.bad.expected, got.bad.observed], [want.bad.expected, want.bad.observed], what);
      assert.equal(got.bad?.observedSequence, want.bad?.observed_sequence, what);
      assert.equal(got.bad?.tornBytes, want.bad?.torn_bytes, what);
    }
  }
});

test('a body of 65,535 bytes is the longest, and 16 levels are the deepest', () => {
  const wrap = (text) => new TextEncoder().encode(`{"a":"${text}","prev":"${'0'.repeat(64)}","seq":0,"v":1}`);
  const room = 65535 - wrap('').length;
  assert.equal(readBody(wrap('x'.repeat(room))).rule, undefined);
  assert.equal(readBody(wrap('x'.repeat(room + 1))).rule, 'size');
});

test('a line that is too long is framing, also before its end is seen', () => {
  for (const size of [65601, 65602, 200000]) {
    const journal = new Journal();
    journal.write(new Uint8Array(size).fill(0x61));
    assert.equal(journal.end().bad.reason, 'framing', `${size} bytes`);
  }
  const journal = new Journal();
  journal.write(new Uint8Array(65600).fill(0x61));
  assert.equal(journal.end().bad.reason, 'torn_tail');
});

test('roots and proofs are those of the definition, for trees of every size up to 70', () => {
  const { bodies } = makeJournal(70);
  const tree = new Tree();
  for (let size = 0; size <= bodies.length; size++) {
    const root = definitionOfRoot(bodies.slice(0, size));
    assert.equal(toHex(tree.root()), root.toString('hex'), `${size} records`);
    for (let index = 0; index < size; index++) {
      const proof = definitionOfProof(index, bodies.slice(0, size));
      const leaf = leafHash(bodies[index]);
      assert.deepEqual(Buffer.from(rootOfProof(index, size, leaf, proof)), root, `${index} of ${size}`);
      assert.equal(rootOfProof(index, size, leaf, [...proof, leaf]), undefined, 'a hash too many');
      if (proof.length > 0) assert.equal(rootOfProof(index, size, leaf, proof.slice(1)), undefined, 'a hash too few');
    }
    if (size < bodies.length) tree.push(leafHash(bodies[size]));
  }
  const leaf = leafHash(bodies[0]);
  for (const [index, size] of [[0, 0], [1, 1], [3, 3], [7, 3]]) {
    for (let n = 0; n < 4; n++) assert.equal(rootOfProof(index, size, leaf, Array(n).fill(leaf)), undefined, `${index} of ${size}, ${n} hashes`);
  }
});

test('a record 0 has no record before it', () => {
  const journal = new Journal();
  journal.write(Buffer.from(`#from 0\n#prev ${'ab'.repeat(32)}\n${makeJournal(1).lines[0]}`));
  assert.deepEqual(journal.end().bad, { sequence: 0, reason: 'framing' });
});

test('an export that starts in the middle comes to the same head and root', () => {
  const whole = makeJournal(40);
  const tree = new Tree();
  for (let from = 0; from < 40; from++) {
    const header = [`#deed-journal/v1 ${whole.origin}`, `#from ${from}`, `#prev ${from === 0 ? '0'.repeat(64) : whole.hashes[from - 1]}`];
    if (from > 0) header.push(`#range ${tree.subtrees.map(toBase64).join(' ')}`);
    const journal = new Journal({ sizes: [from, 39] });
    journal.write(Buffer.from(header.join('\n') + '\n' + whole.lines.slice(from).join('')));
    const got = journal.end();
    assert.equal(got.chain, 'valid', JSON.stringify(got.bad));
    assert.equal(toHex(got.root), definitionOfRoot(whole.bodies).toString('hex'), `from ${from}`);
    assert.equal(toHex(got.roots.get(39)), definitionOfRoot(whole.bodies.slice(0, 39)).toString('hex'), `from ${from}`);
    assert.equal(toHex(got.roots.get(from)), definitionOfRoot(whole.bodies.slice(0, from)).toString('hex'), `from ${from}`);
    tree.push(leafHash(whole.bodies[from]));
  }
});
