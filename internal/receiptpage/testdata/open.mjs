// Opens the page on stdin as far as Node can: checks that its policy lets exactly its own blocks run, runs the script
// with the few parts of a document that it uses, and writes what a person would see.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const html = readFileSync(0, 'utf8');
const all = (pattern) => [...html.matchAll(pattern)].map((m) => m[1]);
const one = (pattern) => {
  const found = all(pattern);
  if (found.length !== 1) throw new Error(`${pattern} stands there ${found.length} times`);
  return found[0];
};
const script = one(/<script type="module">(.*?)<\/script>/gs);
const style = one(/<style>(.*?)<\/style>/gs);
const data = one(/<script type="application\/json" id="data">(.*?)<\/script>/gs);
if (all(/<(script|style)\b/gi).length !== 3) throw new Error('there are other blocks');
const hash = (block) => createHash('sha256').update(block).digest('base64');
const policy = one(/<meta http-equiv="Content-Security-Policy" content="([^"]*)">/g);
const want = `default-src 'none'; script-src 'sha256-${hash(script)}'; style-src 'sha256-${hash(style)}'; base-uri 'none'; form-action 'none'`;
if (policy !== want) throw new Error(`got policy ${policy}, want ${want}`);

class Element {
  constructor(name) {
    Object.assign(this, { name, attributes: {}, children: [] });
  }
  setAttribute(key, value) {
    this.attributes[key] = value;
  }
  append(...children) {
    this.children.push(...children);
  }
  get textContent() {
    return this.children.map((c) => (c instanceof Element ? c.textContent : c)).join('');
  }
}
const places = { data: new Element('script'), verdict: new Element('div'), receipt: new Element('div') };
places.data.append(data);
globalThis.document = { getElementById: (id) => places[id], createElement: (name) => new Element(name) };
for (const name of ['fetch', 'WebSocket']) globalThis[name] = () => { throw new Error('the page asked the network'); };
await import(`data:text/javascript;base64,${Buffer.from(script).toString('base64')}`);

const names = new Set();
const headings = [];
const walk = (e) => {
  if (!(e instanceof Element)) return;
  names.add(e.name);
  for (const key of Object.keys(e.attributes)) names.add(`@${key}`);
  if (e.name === 'h3') headings.push(e.textContent);
  e.children.forEach(walk);
};
walk(places.verdict);
walk(places.receipt);
const [verdict] = places.verdict.children;
console.log(JSON.stringify({ verdict: verdict.textContent, look: verdict.attributes.class, text: places.receipt.textContent, names: [...names].sort(), headings }));
