// Makes the receipt of an action whose texts are hostile to whoever shows them, and a policy for it, as JSON.
import { encode, makeKey, makeReceipt, sum } from '../../../verifier/test/make.mjs';

const hostile = [
  '</script><script>document.title="owned"</script>',
  '<img src=x onerror="document.title=\'owned\'">',
  '<!--<script>',
  ']]>{{.Script}}${document.title="owned"}`',
  '\u202egnp.exe\u2066\u0007\u001b[31m',
  '" autofocus onfocus="document.title=1',
  'x'.repeat(3000),
];
const event = (seq, kind, more) => encode({ prev: String(seq).repeat(64), seq, v: 1, event: kind, time: `2026-10-05T10:09:5${seq}.123456Z`, action_id: 'act_1', ...more });
const bodies = [encode({ prev: '0'.repeat(64), seq: 0, v: 1, event: 'journal.opened' })];
hostile.forEach((text, i) => {
  const kind = i === 0 ? 'action.accepted' : i === hostile.length - 1 ? 'action.completed' : text;
  const after = i === 0 ? {} : { after: sum([0], bodies.at(-1)).toString('hex') };
  bodies.push(event(i + 1, kind, { ...after, actor: { identity: text }, note: text, action: { host: text, method: text, reason: text, state: text } }));
});
const log = makeKey('gw.example/audit/page');
const witness = makeKey('witness.example/w', 4);
const life = hostile.map((_, i) => hostile.length - i);
const receipt = makeReceipt({ origin: log.name, bodies }, life, bodies.length, [log, witness]);
const unseen = makeReceipt({ origin: log.name, bodies }, life, bodies.length, [log]);
const policy = `# <script>alert(1)</script>\nlog ${log.vkey}\nwitness w ${witness.vkey}\nquorum w\n`;
console.log(JSON.stringify({ receipt, unseen, policy, hostile }));
