import assert from 'node:assert/strict';
import { createPublicKey, verify, webcrypto } from 'node:crypto';
import { test } from 'node:test';
import { Journal, Tree, checkCheckpoint, leafHash, parseKey, parseNote, parsePolicy, report, toBase64, trustOf } from '../deed-verify.mjs';
import { definitionOfRoot, makeCheckpoint, makeJournal, makeKey } from './make.mjs';

const log = makeKey('gw.example/audit/js');
const other = makeKey('gw.example/audit/js');
const witnesses = ['w1', 'w2', 'w3'].map((name) => makeKey(`witness.example/${name}`, 4));
const bytes = (text) => new TextEncoder().encode(text);
const trust = trustOf([log.vkey]);

// audit holds a journal against the checkpoint beside it, which may be undefined, and those that were kept.
async function audit(lines, beside, kept = [], t = trust) {
  const checked = await Promise.all([...kept, ...(beside === undefined ? [] : [beside])].map((c) => checkCheckpoint(bytes(c), t)));
  if (beside !== undefined) checked.at(-1).beside = true;
  const journal = new Journal({ sizes: checked.map((c) => c.size) });
  journal.write(bytes(lines.join('')));
  return report(journal.end(), checked, t);
}

test('the example of the specification is read, and its key hash is that of its key', () => {
  const note = bytes(
    'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n' +
      '— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n' +
      '— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n',
  );
  const { signatures } = parseNote(note);
  assert.deepEqual(signatures.map((s) => [s.name, s.id, s.signature.length]), [['example.com/behind-the-sofa', '033de0ae', 64], ['witness.example.com/w1', '8d66cf3f', 72]]);
  const key = parseKey('PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'); // of the Go package sumdb/note
  assert.equal(key.name, 'PeterNeumann');
  const spki = createPublicKey({ key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.key]), format: 'der', type: 'spki' });
  const signed = 'If you think cryptography is the answer to your problem,\nthen you don\'t know what your problem is.\n';
  const signature = Buffer.from('x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=', 'base64').subarray(4);
  assert.ok(verify(null, Buffer.from(signed), spki, signature));
});

test('keys that are malformed, of another hash or another kind are refused', () => {
  const [name, id, key] = [log.name, log.id.toString('hex'), log.vkey.split('+').slice(2).join('+')];
  assert.equal(parseKey(`${name}+${id}+${key}`).name, name);
  for (const bad of ['', name, `${name}+${id}`, `${name}+${id}+`, `+${id}+${key}`, `x${name}+${id}+${key}`, `${name}+00000000+${key}`, `a b+${id}+${key}`, `${name}+${id.toUpperCase()}x+${key}`, `${name}+${id}+${key} `]) {
    assert.throws(() => parseKey(bad), Error, bad);
  }
  assert.throws(() => parseKey(makeKey('pq.example', 6).vkey), /kind that this program cannot check/);
  assert.throws(() => trustOf([witnesses[0].vkey]), /not the key of a log/);
});

test('notes that break the form are refused', async () => {
  const journal = makeJournal(5);
  const good = makeCheckpoint(journal, 5, [log]);
  assert.equal((await checkCheckpoint(bytes(good), trust)).verdict, 'valid');
  const changes = {
    'no final line feed': good.slice(0, -1),
    'carriage returns': good.replaceAll('\n', '\r\n'),
    'a tab': good.replace('\u2014 ', '\u2014\t'),
    'a hyphen for the dash': good.replace('\u2014', '-'),
    'no empty line': good.replace('\n\n', '\n'),
    'no signature': good.slice(0, good.indexOf('\n\n') + 2),
    'two spaces': good.replace('\u2014 ', '\u2014  '),
    'more after the signature': good.replace(/\n$/, ' x\n'),
    'size with a leading zero': makeCheckpoint(journal, '05', [log], { root: definitionOfRoot(journal.bodies) }),
    'size beyond all counting': makeCheckpoint(journal, '9007199254740993', [log], { root: definitionOfRoot(journal.bodies) }),
    'short root': makeCheckpoint(journal, 5, [log], { root: Buffer.alloc(31) }),
    'more signatures than anybody has': good + makeKey('x.example').sign('').repeat(100),
    'empty extension line': makeCheckpoint(journal, 5, [log], { extra: '\n' }),
  };
  for (const [what, note] of Object.entries(changes)) {
    assert.notEqual(note, good, what);
    assert.equal((await checkCheckpoint(bytes(note), trust)).verdict, 'invalid', what);
  }
  assert.equal((await checkCheckpoint(bytes(makeCheckpoint(journal, 5, [log], { extra: 'more\n' })), trust)).verdict, 'valid');
  assert.equal((await checkCheckpoint(new Uint8Array([...bytes(good), 0xff]), trust)).verdict, 'invalid');
});

test('every bit of a checkpoint counts', async () => {
  const good = bytes(makeCheckpoint(makeJournal(5), 5, [log]));
  for (let i = 0; i < 8 * good.length; i += 3) {
    const note = good.slice();
    note[i >> 3] ^= 1 << (i & 7);
    assert.equal((await checkCheckpoint(note, trust)).verdict, 'invalid', `bit ${i}`);
  }
});

test('signatures of unknown keys say nothing, those of known keys have to be right', async () => {
  const journal = makeJournal(5);
  const verdict = async (keys, t = trust) => (await checkCheckpoint(bytes(makeCheckpoint(journal, 5, keys)), t)).verdict;
  assert.equal(await verdict([other, log, ...witnesses]), 'valid');
  assert.equal(await verdict([other]), 'invalid'); // the same name, another key
  assert.equal(await verdict([]), 'invalid');
  assert.equal(await verdict([witnesses[0]]), 'invalid'); // a witness is no log
  const forged = { ...log, sign: other.sign };
  assert.equal(await verdict([forged]), 'invalid');
  const liar = { ...log, sign: (text) => log.sign(`${text}x`) };
  assert.equal(await verdict([liar]), 'invalid');
  assert.equal(await verdict([log, liar]), 'invalid'); // a right one does not excuse a wrong one
  // Key rotation: one checkpoint with both signatures is good for whoever knows either key.
  assert.equal(await verdict([log, other], trustOf([other.vkey])), 'valid');
  // A key counts for the log that it is named after only.
  const foreign = makeKey('other.example');
  assert.equal(await verdict([foreign], trustOf([foreign.vkey])), 'invalid');
});

test('what a run says, and its exit code', async () => {
  const journal = makeJournal(20);
  const own = makeCheckpoint(journal, 20, [log]);
  const five = ['records_checked: 20', 'first_sequence: 0', 'last_sequence: 19', 'chain: valid'];
  const old = makeCheckpoint(journal, 7, [log]);
  const cases = [
    ['all is well', own, [], trust, 0, 'signature: valid'],
    ['and an old one', own, [old], trust, 0, 'signature: valid', 'anchoring: valid to 6, 13 records not anchored'],
    ['and another copy', own, [own], trust, 0, 'signature: valid', 'anchoring: valid'],
    ['only an old one', undefined, [old], trust, 3, 'signature: valid to 6, 13 records not anchored', 'anchoring: valid to 6, 13 records not anchored'],
    ['no checkpoint', undefined, [], trust, 2, 'signature: absent'],
    ['no key', own, [], trustOf([]), 2, 'signature: unchecked'],
    ['no key, and a wrong root', makeCheckpoint(journal, 20, [log], { root: Buffer.alloc(32) }), [], trustOf([]), 1, 'root differs at 20'],
    ['another key', own, [], trustOf([other.vkey]), 1, 'signature: invalid'],
    ['another journal', makeCheckpoint(makeJournal(20, 'x.example'), 20, [makeKey('x.example')]), [], trust, 1, 'signature: invalid'],
    ['one of two invalid', own, [makeCheckpoint(journal, 7, [other])], trust, 1, 'signature: valid', 'anchoring: invalid'],
    ['not anchored', makeCheckpoint(journal, 13, [log]), [], trust, 3, 'signature: valid to 12, 7 records not anchored'],
    ['one not anchored', makeCheckpoint(journal, 19, [log]), [], trust, 3, 'signature: valid to 18, 1 record not anchored'],
    ['nothing anchored', makeCheckpoint(journal, 0, [log]), [], trust, 3, 'signature: valid for no record, 20 records not anchored'],
    ['truncated', makeCheckpoint(makeJournal(24), 24, [log]), [], trust, 1, 'truncated: checkpoint has 24, file ends at 20'],
    ['rewritten', own, [makeCheckpoint(journal, 7, [log], { root: Buffer.alloc(32) }), makeCheckpoint(makeJournal(24), 24, [log])], trust, 1, 'signature: valid', 'root differs at 7'],
    ['cut, by two', own, [makeCheckpoint(makeJournal(24), 23, [log]), makeCheckpoint(makeJournal(24), 24, [log]), old], trust, 1, 'signature: valid', 'truncated: checkpoint has 24, file ends at 20'],
  ];
  for (const [what, beside, kept, t, exit, ...lines] of cases) {
    const got = await audit(journal.lines, beside, kept, t);
    assert.deepEqual([got.exit, ...got.lines], [exit, ...five, ...lines], what);
    assert.ok(got.explained.length > 1, what);
  }
  const nothing = await audit([], makeCheckpoint(journal, 0, [log]));
  assert.deepEqual([nothing.exit, nothing.lines], [2, ['records_checked: 0', 'chain: unchecked', 'signature: valid']]);
});

test('a file that begins in the middle', async () => {
  const journal = makeJournal(20);
  const tree = new Tree();
  journal.bodies.slice(0, 13).forEach((body) => tree.push(leafHash(body)));
  const header = `#from 13\n#prev ${journal.hashes[12]}\n`;
  const range = `#range ${tree.subtrees.map(toBase64).join(' ')}\n`;
  const tail = journal.lines.slice(13);
  const at = (size) => makeCheckpoint(journal, size, [log]);
  const cases = [
    [[header, range, ...tail], at(20), [at(13)], 0, 'signature: valid', 'anchoring: valid to 12, 7 records not anchored'],
    [[header, range, ...tail], at(15), [], 3, 'signature: valid to 14, 5 records not anchored'],
    [[header, range, ...tail], at(20), [at(12)], 2, 'signature: valid', 'anchoring: unchecked'],
    [[header, ...tail], at(20), [], 2, 'signature: unchecked'],
    [[header, ...tail.slice(0, -1)], at(20), [], 1, 'truncated: checkpoint has 20, file ends at 19'],
    [[header, range.replace(/ [^ ]+/, ` ${Buffer.alloc(32).toString('base64')}`), ...tail], at(20), [], 1, 'root differs at 20'],
  ];
  for (const [lines, beside, kept, exit, ...last] of cases) {
    const got = await audit(lines, beside, kept);
    assert.deepEqual([got.exit, ...got.lines.slice(4)], [exit, ...last]);
  }
});

test('an engine without Ed25519 gives no verdict', async (t) => {
  const journal = makeJournal(3);
  for (const name of ['NotSupportedError', 'SyntaxError']) {
    t.mock.method(webcrypto.subtle, 'importKey', () => Promise.reject(new DOMException('no', name)));
    const got = await audit(journal.lines, makeCheckpoint(journal, 3, [log]));
    assert.deepEqual([got.exit, got.lines.at(-1)], [2, 'signature: unchecked, this program has no Ed25519']);
    t.mock.restoreAll();
  }
});

test('damage is reported with both hashes', async () => {
  const { lines, hashes, bodies } = makeJournal(10);
  const changed = [...lines];
  changed[4] = lines[4].replace('action.planned', 'action.planneD');
  const removed = lines.filter((_, i) => i !== 5);
  const { sum } = await import('./make.mjs');
  const spoilt = sum([0], bodies[4].toString().replace('action.planned', 'action.planneD')).toString('hex');
  const before = (n) => [`records_checked: ${n}`, 'first_sequence: 0', `last_sequence: ${n - 1}`, 'chain: broken', `first_bad_sequence: ${n}`];
  const said = async (damaged, beside) => {
    const got = await audit(damaged, beside);
    assert.equal(got.exit, 1);
    return got.lines;
  };
  assert.deepEqual(await said(changed), [...before(4), 'reason: content', `expected_hash: ${hashes[4]}`, `observed_hash: ${spoilt}`, 'signature: absent']);
  assert.deepEqual(await said(removed), [...before(5), 'reason: predecessor', `expected_predecessor: ${hashes[4]}`, `observed_predecessor: ${hashes[5]}`, 'signature: absent']);
  const torn = [...lines.slice(0, 9), lines[9].slice(0, 99)];
  assert.deepEqual(await said(torn), [...before(9), 'reason: torn_tail', 'torn_tail: 99 bytes', 'signature: absent']);
  const whole = makeJournal(10);
  assert.equal((await said(torn, makeCheckpoint(whole, 10, [log]))).at(-1), 'truncated: checkpoint has 10, file ends at 9');
  assert.equal((await said(changed, makeCheckpoint(whole, 10, [log]))).at(-1), 'signature: unchecked'); // what follows was not read
  assert.equal((await said(changed, makeCheckpoint(whole, 3, [log]))).at(-1), 'signature: valid to 2, 1 record not anchored');
});

// The policy of the C2SP document's own shape: two groups in a third.
const policyText = (log0 = log) => `# who is believed
log ${log0.vkey} https://log.example/

\twitness X1 ${witnesses[0].vkey}
witness X2 ${witnesses[1].vkey} https://w2.example/
witness Y1 ${witnesses[2].vkey}
group X 1 X1  X2
group X-and-Y all X Y1
quorum X-and-Y
`;

test('a quorum is counted', async () => {
  const journal = makeJournal(6);
  const t = trustOf([], bytes(policyText()));
  const [x1, x2, y1] = witnesses;
  const stranger = makeKey('witness.example/w1', 4);
  const run = async (keys, kept = []) => audit(journal.lines, makeCheckpoint(journal, 6, [log, ...keys]), kept, t);
  for (const keys of [[x1, y1], [x2, y1], [x1, x2, y1]]) assert.deepEqual([(await run(keys)).exit, (await run(keys)).lines.at(-1)], [0, 'anchoring: valid']);
  for (const keys of [[x1, x2], [y1], [], [stranger, y1]]) {
    const got = await run(keys);
    assert.deepEqual([got.exit, ...got.lines.slice(4)], [2, 'signature: valid', 'anchoring: absent']);
  }
  const older = await run([], [makeCheckpoint(journal, 4, [log, x1, y1])]);
  assert.deepEqual([older.exit, ...older.lines.slice(4)], [3, 'signature: valid', 'anchoring: valid to 3, 2 records not anchored']);
  const spoilt = { ...x1, sign: (text) => x1.sign(`${text}x`) };
  const late = { ...x1, sign: (text) => x1.sign(text, 2n ** 63n) };
  for (const keys of [[spoilt, x2, y1], [late]]) assert.equal((await run(keys)).lines[4], 'signature: invalid');
  const noLog = await audit(journal.lines, makeCheckpoint(journal, 6, [x1, y1]), [], t);
  assert.equal(noLog.lines[4], 'signature: invalid');
  // A key that is named takes the place of the policy's logs.
  const named = trustOf([other.vkey], bytes(policyText()));
  assert.equal((await audit(journal.lines, makeCheckpoint(journal, 6, [log, x1, y1]), [], named)).lines[4], 'signature: invalid');
});

test('policies that break the rules are refused', () => {
  const good = policyText();
  assert.equal(parsePolicy(bytes(good)).witnesses.length, 3);
  assert.equal(parsePolicy(bytes('quorum none\n')).quorum(new Set()), true);
  assert.equal(parsePolicy(bytes(good.replaceAll(' X1 ', ' h\u00fcter '))).witnesses.length, 3);
  const w4 = makeKey('witness.example/w4', 4);
  const again = makeKey('x.example', 4);
  const changes = {
    'no quorum': good.replace(/quorum.*\n/, ''),
    'two quorums': `${good}quorum none\n`,
    'quorum of nobody': good.replace('quorum X-and-Y', 'quorum Z'),
    'quorum before its group': `quorum X-and-Y\n${good.replace(/quorum.*\n/, '')}`,
    'no line feed at the end': good.slice(0, -1),
    'a member twice in a group': good.replace('X1  X2', 'X1 X1'),
    'a member of two groups': good.replace('all X Y1', 'all X Y1 X1'),
    'none as a member': good.replace('all X Y1', 'all X none'),
    'none defined': `witness none ${w4.vkey}\n${good}`,
    'a name twice': good.replace('witness X2', 'witness X1'),
    'a threshold of 0': good.replace('group X 1', 'group X 0'),
    'a threshold too high': good.replace('group X 1', 'group X 3'),
    'a threshold with a leading zero': good.replace('group X 1', 'group X 01'),
    'a threshold that is no number': good.replace('group X 1', 'group X most'),
    'a threshold named like a method': good.replace('group X 1', 'group X constructor'),
    'an empty group': good.replace('X1  X2', ''),
    'the same log twice': `log ${log.vkey}\n${good}`,
    'the same witness twice': good.replace('group X 1', `witness again ${witnesses[0].vkey}\ngroup X 1`),
    'a log as a witness': good.replace(witnesses[0].vkey, other.vkey),
    'a witness as a log': good.replace(log.vkey, again.vkey),
    'an unknown word': `${good}logs ${other.vkey}\n`,
    'too many values': good.replace('https://w2.example/', 'https://w2.example/ x'),
    'a carriage return': good.replace('quorum X-and-Y\n', 'quorum X-and-Y\r\n'),
    'a delete character': good.replace('# who', '# \x7fwho'),
  };
  for (const [what, text] of Object.entries(changes)) {
    assert.notEqual(text, good, what);
    assert.throws(() => parsePolicy(bytes(text)), Error, what);
  }
});
