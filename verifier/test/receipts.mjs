// Reads a journal, makes the receipt of every record with the definitions in make.mjs, following after, checks each, and
// writes how many events each receipt held: the other half of the Go test.
import { readFileSync } from 'node:fs';
import { checkReceipt, trustOf } from '../deed-verify.mjs';
import { makeKey, makeReceipt } from './make.mjs';

const lines = readFileSync(0, 'utf8').trimEnd().split('\n');
const bodies = lines.map((line) => Buffer.from(line.slice(65)));
const place = new Map(lines.map((line, i) => [line.slice(0, 64), i]));
const log = makeKey(JSON.parse(bodies[0]).origin);
const trust = trustOf([log.vkey]);

const counts = [];
for (let i = 0; i < bodies.length; i++) {
  const life = [i];
  for (let after; (after = JSON.parse(bodies[life.at(-1)]).after); ) life.push(place.get(after));
  const got = await checkReceipt(new TextEncoder().encode(makeReceipt({ origin: log.name, bodies }, life, bodies.length, [log])), trust);
  if (got.verdict !== 'valid') throw new Error(`record ${i}: ${got.reason}: ${got.why}`);
  counts.push(got.events.length);
}
console.log(JSON.stringify(counts));
