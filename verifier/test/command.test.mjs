// AU-09: the verifier alone on a copied file with the public key.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { toBase64, Tree, leafHash } from '../deed-verify.mjs';
import { makeCheckpoint, makeJournal, makeKey, makeReceipt } from './make.mjs';

const program = fileURLToPath(new URL('../deed-verify.mjs', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'deed-verify-'));
after(() => rmSync(dir, { recursive: true }));

const put = (name, text) => {
  const file = join(dir, name);
  writeFileSync(file, text);
  return file;
};
const call = (...args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  return { exit: status, out: stdout, complaint: stderr };
};
const log = makeKey('gw.example/audit/js');

// AU-06: 1,842 records from sequence 91001 give exactly these lines and exit 0. The 91,001 before them are not made:
// the header's subtrees stand for them.
test('the example of the requirement', () => {
  const { sums, lines, root } = segment();
  const file = put('segment.events', lines);
  put('segment.events.checkpoint', makeCheckpoint({ origin: log.name }, 92843, [log], { root: Buffer.from(root) }));
  const got = call(file, '--key', log.vkey);
  assert.equal(got.out, 'records_checked: 1842\nfirst_sequence: 91001\nlast_sequence: 92842\nchain: valid\nsignature: valid\n');
  assert.equal(got.exit, 0, got.complaint); // Node 18 warns there that its Ed25519 is new
  assert.equal(sums, 1842);
});

function segment() {
  const from = 91001;
  const bits = from.toString(2).split('').filter((b) => b === '1').length;
  const subtrees = Array.from({ length: bits }, (_, i) => new Uint8Array(32).fill(i + 1));
  const tree = new Tree(from, subtrees);
  let prev = 'ab'.repeat(32);
  let lines = `#deed-journal/v1 ${log.name}\n#from ${from}\n#prev ${prev}\n#range ${subtrees.map(toBase64).join(' ')}\n`;
  let sums = 0;
  for (let seq = from; seq <= 92842; seq++, sums++) {
    const body = `{"event":"action.planned","prev":"${prev}","seq":${seq},"v":1}`;
    const leaf = leafHash(Buffer.from(body));
    prev = Buffer.from(leaf).toString('hex');
    lines += `${prev} ${body}\n`;
    tree.push(leaf);
  }
  return { sums, lines, root: tree.root() };
}

test('damage, cuts and what cannot be read have exit codes of their own', () => {
  const journal = makeJournal(20);
  const file = put('journal.events', journal.lines.join(''));
  const key = ['--key', log.vkey];
  const last = (got) => [got.exit, got.out.trimEnd().split('\n').at(-1)];
  assert.deepEqual(last(call(file, ...key)), [2, 'signature: absent']);
  const kept = put('kept', makeCheckpoint(journal, 7, [log]));
  assert.deepEqual(last(call(file, ...key, '--checkpoint', kept)), [3, 'anchoring: valid to 6, 13 records not anchored']);
  put('journal.events.checkpoint', makeCheckpoint(journal, 20, [log]));
  assert.deepEqual(last(call(file, ...key, '--checkpoint', kept)), [0, 'anchoring: valid to 6, 13 records not anchored']);
  assert.deepEqual(last(call(file, ...key)), [0, 'signature: valid']);
  assert.deepEqual(last(call(file)), [2, 'signature: unchecked']);
  const other = put('other', makeCheckpoint(journal, 7, [log], { root: Buffer.alloc(32, 7) }));
  assert.deepEqual(last(call(file, ...key, '--checkpoint', kept, '--checkpoint', other)), [1, 'root differs at 7']);
  put('journal.events', journal.lines.slice(0, 18).join(''));
  assert.deepEqual(last(call(file, ...key)), [1, 'truncated: checkpoint has 20, file ends at 18']);
  const policy = put('policy', `log ${log.vkey}\nquorum none\n`);
  assert.deepEqual(last(call(file, '--policy', policy)), [1, 'truncated: checkpoint has 20, file ends at 18']);
  put('journal.events', journal.lines.filter((_, i) => i !== 4).join(''));
  const broken = call(file, ...key);
  assert.equal(broken.out, `records_checked: 4\nfirst_sequence: 0\nlast_sequence: 3\nchain: broken\nfirst_bad_sequence: 4\nreason: predecessor\nexpected_predecessor: ${journal.hashes[3]}\nobserved_predecessor: ${journal.hashes[4]}\nsignature: unchecked\n`);
  assert.equal(broken.exit, 1);
  assert.deepEqual(last(call(join(dir, 'nowhere'))).slice(0, 1), [4]);
  assert.equal(call(file, ...key, '--checkpoint', join(dir, 'nowhere')).exit, 4);
  for (const wrong of [[], [file, file], [file, '--key'], [file, '--repair'], [file, '--key', 'x'], ['--receipt', file, '--checkpoint', kept]]) {
    const got = call(...wrong);
    assert.deepEqual([got.exit, got.out], [4, ''], wrong.join(' '));
    assert.match(got.complaint, /usage/);
  }
});

// AU-08: the file stays as it is.
test('a failing run changes nothing', () => {
  const file = put('untouched.events', makeJournal(5).lines.join('').replace('planned', 'plannex'));
  utimesSync(file, 1000, 1000);
  const before = [readFileSync(file, 'hex'), statSync(file).mtimeMs];
  assert.equal(call(file, '--key', log.vkey).exit, 1);
  assert.deepEqual([readFileSync(file, 'hex'), statSync(file).mtimeMs], before);
});

test('receipts, and explanations without control characters', () => {
  const file = put('a.receipt', makeReceipt(makeJournal(11), [9, 6, 3], 11, [log]));
  const got = call('--receipt', file, '--key', log.vkey);
  assert.deepEqual([got.exit, got.out], [0, 'receipt: valid\nevents: 3\nfirst_sequence: 3\nlast_sequence: 9\nsignature: valid\n']);
  assert.match(call('--receipt', file, '--key', log.vkey, '--explain').out, /cannot show what came after/);
  assert.equal(call('--receipt', file).exit, 2);
  const hostile = put('hostile.events', makeJournal(3).lines.join(''));
  const name = 'evil\u009b31m\u202e';
  put('hostile.events.checkpoint', makeCheckpoint(makeJournal(3), 3, [makeKey(name)], { origin: name }));
  const out = call(hostile, '--key', log.vkey, '--explain').out;
  assert.match(out, /signature: invalid/);
  assert.doesNotMatch(out, /[\u009b\u202e]/);
});
