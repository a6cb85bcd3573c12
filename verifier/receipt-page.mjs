
// ---- Page: what checkReceipt said, shown to a person ----
// It stands behind deed-verify.mjs in one script. Nothing of a receipt becomes markup: it is put in as text only, and
// nothing at all is shown of one that is not valid.

// show replaces the characters that one cannot see, or that turn others around, by their number.
const show = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\u27e8U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`);

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

// What each event says about the effect, in the words of the states.
const titles = {
  'action.accepted': 'Accepted: the action is on record, nothing was sent',
  'action.awaiting_approval': 'Waits for an approval',
  'action.authorized': 'Authorized',
  'action.rejected': 'Rejected: nothing was sent for it',
  'action.dispatched': 'Dispatched: from here on the effect may have happened',
  'action.completed': 'Completed: the effect happened',
  'action.failed': 'Failed: the effect did not happen',
  'action.unknown': 'Unknown: the effect may have happened',
  'action.recovery': 'Still unknown',
  'action.reconcile_started': 'The target is asked what happened',
  'action.observed': 'What was learned of the effect',
  'action.delegated': 'The target accepted it and finishes later',
  'action.delivery': 'Delivery of the result to the agent',
  'action.purged': 'Its content was erased after the time it was kept',
};

// facts are the members that tell a person most; all others stand below them.
const facts = [
  ['Actor', (e) => e.actor?.identity],
  ['Target', (e) => e.action && [e.action.method, e.action.host, e.action.path_template].filter(Boolean).join(' ')],
  ['Credential', (e) => e.action?.credential_ref],
  ['Reason', (e) => e.action?.reject_reason ?? e.action?.reason],
  ['Attempt', (e) => e.attempt?.number ?? e.outcome?.number],
  ['Certainty', (e) => e.outcome?.certainty],
  ['Bytes sent', (e) => e.outcome?.bytes_sent],
  ['Answer', (e) => e.outcome?.http_status ?? e.observation?.http_status],
  ['Found', (e) => e.observation?.finding],
  ['Approved by', (e) => e.binding?.decision_id],
  ['Reviewer', (e) => e.review?.reviewer],
  ['Decision', (e) => e.review?.decision],
  ['Delivery', (e) => e.delivery?.to],
];

function listOf(pairs) {
  const list = element('dl', {});
  for (const [name, value] of pairs) {
    if (value !== undefined && value !== '') list.append(element('dt', {}, name), element('dd', {}, show(value)));
  }
  return list;
}

function eventItem({ seq, hash, body, fields }) {
  const kind = typeof fields.event === 'string' ? fields.event : '';
  const title = Object.hasOwn(titles, kind) ? titles[kind] : `Event ${show(kind)}`;
  return element(
    'li',
    {},
    element('h3', {}, title),
    fields.time === undefined ? undefined : element('time', { datetime: fields.time }, `${fields.time.slice(0, 10)} ${fields.time.slice(11, -1)} UTC`),
    listOf(facts.map(([name, of]) => [name, of(fields)])),
    element(
      'details',
      {},
      element('summary', {}, `Record ${seq}, as it was hashed`),
      element('pre', {}, show(body)),
      listOf([['SHA-256 of a zero byte and the record', hash]]),
    ),
  );
}

function verdictOf(answer) {
  if (answer.verdict === 'unchecked') return ['warn', `Not checked: ${answer.why}.`];
  if (answer.verdict === 'invalid') return ['bad', `Invalid: ${answer.why}. Nothing of this receipt is shown, since nothing of it is proven.`];
  return ['good', 'Valid: these events are on the signed record, and none is missing between the first and the last of them.'];
}

function trustSection({ checkpoint }, trust) {
  const signers = new Set(checkpoint.signers);
  const keys = [...trust.logs, ...trust.witnesses].map((key) => [key.kind === 1 ? 'Log' : 'Witness', `${key.name} (key ${key.id}) ${signers.has(key) ? 'signed' : 'did not sign'}`]);
  return [
    element('h2', {}, 'Who is believed'),
    element('p', {}, 'This page brought along the keys that it believes. Compare them with keys that you have from elsewhere: whoever made the page could have chosen others.'),
    listOf(keys),
    listOf([['Records that the log signed for', checkpoint.size], ['Root', toBase64(checkpoint.root)]]),
    element('h2', {}, 'What this does not show'),
    element('p', {}, 'What happened to the action after the last event here. That a decision was right. That the page itself is honest: the verifier of deed and the receipt file show that without it.'),
  ];
}

function receiptParts(answer, trust) {
  const { events } = answer;
  const { action_id: id, root_run_id: run } = events.at(-1).fields;
  return [
    listOf([['Action', id], ['Run', run], ['Journal', answer.checkpoint.origin]]),
    element('h2', {}, events.length === 1 ? 'One event' : `${events.length} events, in order`),
    element('ol', {}, ...events.map(eventItem)),
    ...trustSection(answer, trust),
  ];
}

async function showReceipt() {
  const place = document.getElementById('verdict');
  let parts = [];
  let verdict;
  try {
    const data = JSON.parse(document.getElementById('data').textContent);
    const trust = trustOf([], fromBase64(data.policy));
    const answer = await checkReceipt(fromBase64(data.receipt), trust);
    verdict = verdictOf(answer);
    if (answer.verdict === 'valid') parts = receiptParts(answer, trust);
  } catch (err) {
    verdict = ['bad', `Not checked: ${err.message}`];
    parts = [];
  }
  place.append(element('p', { class: `verdict ${verdict[0]}` }, show(verdict[1])));
  document.getElementById('receipt').append(...parts);
}

if (typeof document === 'object') await showReceipt();
