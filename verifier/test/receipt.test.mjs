import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { test } from 'node:test';
import { checkReceipt, receiptReport, trustOf } from '../deed-verify.mjs';
import { definitionOfProof, encode, makeCheckpoint, makeJournal, makeKey, makeReceipt, sum } from './make.mjs';

const log = makeKey('gw.example/audit/js');
const witness = makeKey('witness.example/w', 4);
const trust = trustOf([log.vkey]);
const bytes = (text) => new TextEncoder().encode(text);
const check = (receipt, t = trust) => checkReceipt(bytes(receipt), t);
const journal = makeJournal(11);
const good = makeReceipt(journal, [9, 6, 3], 11, [log]);

test('a receipt proves the life of an action, offline, and gives its events in order', async () => {
  const got = await check(good);
  assert.equal(got.verdict, 'valid', got.why);
  assert.deepEqual(got.events.map((e) => e.seq), [3, 6, 9]);
  assert.deepEqual(got.events.map((e) => e.hash), [3, 6, 9].map((i) => journal.hashes[i]));
  assert.equal(got.events[0].fields.action_id, 'act_1');
  assert.deepEqual(receiptReport(got).lines, ['receipt: valid', 'events: 3', 'first_sequence: 3', 'last_sequence: 9', 'signature: valid']);
  for (let size = 1; size <= 11; size++) {
    for (let i = 0; i < size; i++) {
      const life = i > 0 && i % 3 === 0 ? [9, 6, 3].filter((j) => j <= i) : [i];
      assert.equal((await check(makeReceipt(journal, life, size, [log]))).verdict, 'valid', `record ${i} of ${size}`);
    }
  }
});

test('every bit of a receipt counts', async () => {
  const whole = bytes(good);
  for (let i = 0; i < 8 * whole.length; i += 5) {
    const receipt = whole.slice();
    receipt[i >> 3] ^= 1 << (i & 7);
    assert.equal((await checkReceipt(receipt, trust)).verdict, 'invalid', `bit ${i}`);
  }
  for (let cut = 0; cut < whole.length; cut += 11) assert.equal((await checkReceipt(whole.subarray(0, cut), trust)).verdict, 'invalid', `cut at ${cut}`);
});

test('extra is hashed and never trusted', async () => {
  const life = (indexes) => Buffer.from(indexes.map((i) => journal.bodies[i].toString()).join('\n')).toString('base64');
  const withExtra = (extra, receipt = good) => receipt.replace(/^extra .*$/m, `extra ${extra}`);
  const reasons = {
    'an earlier event left out': [withExtra(life([9, 3])), 'after'],
    'the first event left out': [withExtra(life([9, 6])), 'after'],
    'an event of another action put in its place': [withExtra(life([9, 6, 4])), 'after'],
    'oldest first': [withExtra(life([3, 6, 9])), 'index'],
    'one event more': [withExtra(life([9, 6, 3, 2])), 'after'],
    'an empty line more': [withExtra(Buffer.from(`${Buffer.from(life([9, 6, 3]), 'base64')}\n`).toString('base64')), 'profile'],
    'another body': [withExtra(life([10])), 'index'],
    'no extra': [good.replace(/^extra .*\n/m, ''), 'malformed'],
    'an empty extra': [withExtra(''), 'malformed'],
    'base64 with spare bits': [withExtra(life([9, 6, 3]).replace(/(.)(=+)$/, (_, c, pad) => String.fromCharCode(c.charCodeAt(0) + 1) + pad)), undefined],
    'another index': [good.replace('index 9', 'index 8'), 'index'],
    'an index outside': [good.replace('index 9', 'index 11'), 'index'],
    'an index with a leading zero': [good.replace('index 9', 'index 09'), 'malformed'],
    'another version': [good.replace('tlog-proof@v1', 'tlog-proof@v2'), 'malformed'],
    'a hash left out': [good.replace(/(index 9\n)[^\n]+\n/, '$1'), 'inclusion'],
    'a hash that is none': [good.replace(/(index 9\n)[^\n]+\n/, '$1AAAA\n'), 'malformed'],
  };
  for (const [what, [receipt, reason]] of Object.entries(reasons)) {
    if (receipt === good) continue; // no padding, so there are no spare bits
    const got = await check(receipt);
    assert.equal(got.verdict, 'invalid', what);
    if (reason) assert.equal(got.reason, reason, `${what}: ${got.why}`);
    assert.deepEqual(receiptReport(got).lines, ['receipt: invalid', `reason: ${got.reason}`]);
    assert.equal(receiptReport(got).exit, 1);
  }
});

// build makes a receipt of bodies that a dishonest or broken writer put into the tree.
function build(bodies, newestFirst) {
  const odd = { origin: log.name, bodies };
  return makeReceipt(odd, newestFirst, bodies.length, [log]);
}

test('what is in the tree is still checked', async () => {
  const first = encode({ prev: '0'.repeat(64), seq: 0, v: 1, action_id: 'a' });
  const at = (seq, more) => encode({ prev: '1'.repeat(64), seq, v: 1, action_id: 'a', ...more });
  const after = sum([0], first).toString('hex');
  assert.equal((await check(build([first, at(1, { after })], [1, 0]))).verdict, 'valid');
  const cases = [
    ['action', at(1, { after, action_id: 'b' })],
    ['index', at(2, { after })],
    ['after', at(1, { after: 7 })],
    ['after', at(1, { after: after.toUpperCase() })],
    ['profile', Buffer.from(at(1, { after }).toString().replace('{', '{ '))],
  ];
  for (const [reason, body] of cases) {
    const got = await check(build([first, body], [1, 0]));
    assert.deepEqual([got.verdict, got.reason], ['invalid', reason], got.why);
  }
  const anonymous = encode({ prev: '0'.repeat(64), seq: 0, v: 1 });
  const follower = encode({ prev: '1'.repeat(64), seq: 1, v: 1, after: sum([0], anonymous).toString('hex') });
  assert.equal((await check(build([anonymous, follower], [1, 0]))).reason, 'action');
  const later = encode({ prev: '1'.repeat(64), seq: 5, v: 1, action_id: 'a' });
  assert.equal((await check(build([later, at(1, { after: sum([0], later).toString('hex') })], [1, 0]))).reason, 'after');
});

test('the checkpoint of another log, another tree or with too few witnesses', async () => {
  const stranger = makeKey(log.name);
  assert.equal((await check(makeReceipt(journal, [9, 6, 3], 11, [stranger]))).reason, 'checkpoint');
  const elsewhere = makeKey('other.example');
  const foreign = makeReceipt({ ...journal, origin: 'other.example' }, [9, 6, 3], 11, [elsewhere]);
  assert.equal((await check(foreign)).reason, 'checkpoint');
  const swapped = good.slice(0, good.indexOf('\n\n') + 2) + makeCheckpoint(makeJournal(12), 12, [log]);
  assert.equal((await check(swapped)).reason, 'inclusion');
  const policy = trustOf([], bytes(`log ${log.vkey}\nwitness w ${witness.vkey}\nquorum w\n`));
  const unseen = await check(good, policy);
  assert.deepEqual([unseen.verdict, unseen.reason], ['invalid', 'checkpoint']);
  assert.match(unseen.why, /witnesses/);
  assert.equal((await check(makeReceipt(journal, [9, 6, 3], 11, [log, witness]), policy)).verdict, 'valid');
  const nobody = trustOf([]);
  assert.equal(receiptReport(await check(good, nobody)).exit, 2);
});

test('an engine without Ed25519 gives no verdict', async (t) => {
  t.mock.method(webcrypto.subtle, 'importKey', () => Promise.reject(new DOMException('no', 'NotSupportedError')));
  const got = receiptReport(await check(good));
  assert.deepEqual([got.exit, got.lines[0]], [2, 'receipt: unchecked']);
});

test('proofs of a million records', async () => {
  // Only the path is made: the other subtrees are any hashes.
  const index = 999_998;
  const body = encode({ prev: '0'.repeat(64), seq: index, v: 1 });
  let hash = sum([0], body);
  const proof = [];
  for (let at = index, last = 999_999; last > 0; at >>= 1, last >>= 1) {
    if (at % 2 === 0 && at === last) continue;
    const sibling = sum(`subtree ${last}`);
    proof.push(sibling.toString('base64'));
    hash = at % 2 === 1 ? sum([1], sibling, hash) : sum([1], hash, sibling);
  }
  assert.ok(proof.length <= 20 && definitionOfProof(0, []).length === 0);
  const checkpoint = makeCheckpoint({ origin: log.name }, 1_000_000, [log], { root: hash });
  const receipt = ['c2sp.org/tlog-proof@v1', `extra ${body.toString('base64')}`, `index ${index}`, ...proof, '', checkpoint].join('\n');
  assert.equal((await check(receipt)).verdict, 'valid');
  assert.ok(receipt.length < 2500);
});
