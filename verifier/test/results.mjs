// Reads a list of journals in base64, as JSON, and writes what the verifier says of each: the other half of the Go test.
import { readFileSync } from 'node:fs';
import { Journal, toBase64 } from '../deed-verify.mjs';

const journals = JSON.parse(readFileSync(0));
console.log(
  JSON.stringify(
    journals.map((encoded) => {
      const journal = new Journal();
      journal.write(new Uint8Array(Buffer.from(encoded, 'base64')));
      const { root, ...rest } = journal.end();
      return { ...rest, root: root && toBase64(root) };
    }),
  ),
);
