// AU-05: the vectors of checkpoints, policies, receipts and audits; equal verdicts, texts and exit codes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Journal, checkCheckpoint, checkReceipt, parsePolicy, report, toHex, trustOf } from '../deed-verify.mjs';

const vectors = JSON.parse(readFileSync(new URL('../../docs/vectors/audit.json', import.meta.url)));
const text = (t) => new TextEncoder().encode(t);
const binary = (b) => new Uint8Array(Buffer.from(b, 'base64'));
const trustIn = (v) => trustOf([], v.policy === undefined ? undefined : text(v.policy));

for (const v of vectors.checkpoints) {
  test(`checkpoint: ${v.name}`, async () => {
    const got = await checkCheckpoint(binary(v.note_base64), trustIn(v));
    assert.equal(got.verdict, v.refused ? 'invalid' : 'valid', got.why);
    if (v.refused) return;
    assert.deepEqual([got.origin, got.size, toHex(got.root), got.hasQuorum], [v.origin, v.size ?? 0, v.root, v.quorum ?? false]);
    assert.equal(got.signers.filter((key) => key.kind === 4).length, v.witnesses?.length ?? 0);
  });
}

for (const v of vectors.policies) {
  test(`policy: ${v.name}`, () => {
    if (v.refused_line !== undefined) {
      assert.throws(() => parsePolicy(text(v.policy)), v.refused_line > 0 ? new RegExp(`^Error: line ${v.refused_line} `) : Error);
      return;
    }
    const got = parsePolicy(text(v.policy));
    assert.deepEqual([got.logs.length, got.witnesses.length], [v.logs ?? 0, v.witnesses ?? 0]);
  });
}

for (const v of vectors.receipts) {
  test(`receipt: ${v.name}`, async () => {
    const got = await checkReceipt(binary(v.receipt_base64), trustIn(v));
    assert.equal(got.reason, v.refused, got.why);
    assert.equal(got.verdict, v.refused ? 'invalid' : 'valid');
    if (!v.refused) assert.deepEqual(got.events.map((e) => e.body).reverse(), v.bodies);
  });
}

// Several segments at once, and the whole journal asked for, are the Go verifier's alone.
const audits = vectors.audits.filter((v) => v.files_base64.length === 1 && !v.whole);

for (const v of audits) {
  test(`audit: ${v.name}`, async () => {
    const notes = [...(v.kept_base64 ?? []), ...(v.beside_base64 ? [v.beside_base64] : [])];
    const checkpoints = await Promise.all(notes.map((note) => checkCheckpoint(binary(note), trustIn(v))));
    if (v.beside_base64) checkpoints.at(-1).beside = true;
    const journal = new Journal({ sizes: checkpoints.map((c) => c.size) });
    journal.write(binary(v.files_base64[0]));
    const got = report(journal.end(), checkpoints, trustIn(v));
    assert.equal(`${got.lines.join('\n')}\n`, v.text);
    assert.equal(got.exit, v.exit ?? 0);
  });
}

test('there are vectors of each kind', () => {
  for (const list of [vectors.checkpoints, vectors.policies, vectors.receipts, audits]) assert.ok(list.length >= 9);
});
