// The attack table of the journal's format: what the chain shows, what the log's own checkpoint beside the file, what one
// of 700 records that an auditor kept, and what one of 950 that a witness cosigned.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Journal, checkCheckpoint, report, trustOf } from '../deed-verify.mjs';
import { encode, makeCheckpoint, makeKey, sum } from './make.mjs';

const log = makeKey('gw.example/audit/attacked');
const witness = makeKey('witness.example/w', 4);
const byKey = trustOf([log.vkey]);
const byPolicy = trustOf([], new TextEncoder().encode(`log ${log.vkey}\nwitness w ${witness.vkey}\nquorum w\n`));

// write continues a journal from the record before seq on, to 1,000 records.
function write(before, mark) {
  const made = { origin: log.name, bodies: [...before] };
  let prev = before.length === 0 ? '0'.repeat(64) : sum([0], before.at(-1)).toString('hex');
  for (let seq = before.length; seq < 1000; seq++) {
    const opening = seq === 0 ? { event: 'journal.opened', format: 'deed-journal-json/1', origin: log.name } : {};
    made.bodies.push(encode({ event: 'action.planned', mark, ...opening, prev, seq, v: 1 }));
    prev = sum([0], made.bodies.at(-1)).toString('hex');
  }
  return made;
}

const lineOf = (body) => `${sum([0], body).toString('hex')} ${body}\n`;
const linesOf = (journal) => journal.bodies.map(lineOf);
const honest = write([], 'honest');
const lines = linesOf(honest);
const own = makeCheckpoint(honest, 1000, [log]);
const auditors = makeCheckpoint(honest, 700, [log]);
const witnessed = makeCheckpoint(honest, 950, [log, witness]);
const modified = Buffer.from(honest.bodies[500].toString().replace('honest', 'hOnest'));
const rewrite = (from) => write(honest.bodies.slice(0, from), 'rewritten');
const signed = (journal) => ({ lines: linesOf(journal), own: makeCheckpoint(journal, 1000, [log]) });
const splice = (at, gone, ...put) => [...lines.slice(0, at), ...put, ...lines.slice(at + gone)];

const attacks = {
  none: [{ lines, own }, 'ok', 'ok', 'ok', 'ok'],
  'modify #500': [{ lines: splice(500, 1, lines[500].replace('honest', 'hOnest')), own }, '500 content', 'found', 'found', 'found'],
  'modify #500 and its own hash': [{ lines: splice(500, 1, lineOf(modified)), own }, '501 predecessor', 'found', 'found', 'found'],
  'delete #500': [{ lines: splice(500, 1), own }, '500 predecessor', 'found', 'found', 'found'],
  'insert a copy at #500': [{ lines: splice(500, 0, lines[400]), own }, '500 predecessor', 'found', 'found', 'found'],
  'swap #500, #501': [{ lines: splice(500, 2, lines[501], lines[500]), own }, '500 predecessor', 'found', 'found', 'found'],
  'delete the head': [{ lines: lines.slice(1), own }, '0 predecessor', 'found', 'found', 'found'],
  'cut to 980, checkpoint left there': [{ lines: lines.slice(0, 980), own }, 'ok', 'found', 'ok', 'ok'],
  'cut to 980, older checkpoint put back': [{ lines: lines.slice(0, 980), own: makeCheckpoint(honest, 980, [log]) }, 'ok', 'ok', 'ok', 'ok'],
  'cut to 800, older checkpoint made': [{ lines: lines.slice(0, 800), own: makeCheckpoint(honest, 800, [log]) }, 'ok', 'ok', 'ok', 'found'],
  'cut to 600, older checkpoint made': [{ lines: lines.slice(0, 600), own: makeCheckpoint(honest, 600, [log]) }, 'ok', 'ok', 'found', 'found'],
  'rewrite from #500, no key': [{ lines: linesOf(rewrite(500)), own }, 'ok', 'found', 'found', 'found'],
  'the same, checkpoint removed': [{ lines: linesOf(rewrite(500)) }, 'ok', 'absent', 'found', 'found'],
  'rewrite from #500 with the key': [signed(rewrite(500)), 'ok', 'ok', 'found', 'found'],
  'rewrite from #800 with the key': [signed(rewrite(800)), 'ok', 'ok', 'ok', 'found'],
  'rewrite from #970 with the key': [signed(rewrite(970)), 'ok', 'ok', 'ok', 'ok'],
  'replace all with the key': [signed(rewrite(0)), 'ok', 'ok', 'found', 'found'],
};

async function audit(attacked, beside, kept, trust) {
  const checked = await Promise.all([...kept, ...(beside ? [beside] : [])].map((c) => checkCheckpoint(new TextEncoder().encode(c), trust)));
  if (beside) checked.at(-1).beside = true;
  const journal = new Journal({ sizes: checked.map((c) => c.size) });
  journal.write(new TextEncoder().encode(attacked.join('')));
  const result = journal.end();
  return { result, ...report(result, checked, trust) };
}

const names = { 0: 'ok', 1: 'found', 2: 'absent', 3: 'ok' };

for (const [what, [attacked, chain, ...others]] of Object.entries(attacks)) {
  test(what, async () => {
    const { result } = await audit(attacked.lines, undefined, [], byKey);
    assert.equal(result.bad ? `${result.bad.sequence} ${result.bad.reason}` : 'ok', chain, 'the chain');
    const runs = [
      await audit(attacked.lines, attacked.own, [], byKey),
      await audit(attacked.lines, undefined, [auditors], byKey),
      await audit(attacked.lines, undefined, [witnessed], byPolicy),
    ];
    assert.deepEqual(runs.map((r) => names[r.exit]), others, runs.map((r) => r.lines.at(-1)).join('\n'));
  });
}
