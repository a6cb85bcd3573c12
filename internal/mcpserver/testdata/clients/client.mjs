// A real MCP client with a fetch that resends: it gives up on an answer after a while and sends the same bytes again, as
// retrying middleware does. Reads one JSON object from the command line, prints one JSON object.
const task = JSON.parse(process.argv[2]); // {sdk, era, url, token, tool, args, patience, resends, meta}

const seen = { posts: 0, errors: [] };

// resendingFetch sends a POST again when it has no answer within `patience` milliseconds, or when it fails.
async function resendingFetch(input, init = {}) {
  const isCall = init.method === 'POST' && String(init.body).includes('"tools/call"');
  if (!isCall) return fetch(input, init);
  let last;
  for (let n = 0; n <= task.resends; n++) {
    const patience = n < task.resends ? AbortSignal.timeout(task.patience) : undefined;
    try {
      seen.posts++;
      const signals = [init.signal, patience].filter(Boolean);
      const answer = await fetch(input, { ...init, signal: signals.length ? AbortSignal.any(signals) : undefined });
      const body = await answer.arrayBuffer(); // wait for the whole answer, so that a cut one counts as lost
      return new Response(body, { status: answer.status, headers: answer.headers });
    } catch (err) {
      seen.errors.push(String(err.cause?.code ?? err.name));
      last = err;
    }
  }
  throw last;
}

async function connect() {
  const options = { fetch: resendingFetch, requestInit: { headers: { Authorization: `Bearer ${task.token}` } } };
  const url = new URL(task.url);
  if (task.sdk === 'v1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client({ name: 'ts-v1', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(url, options));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const mode = task.era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client({ name: 'ts-v2', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(url, options));
  return client;
}

try {
  const client = await connect();
  const params = { name: task.tool, arguments: task.args, _meta: task.meta };
  const result = await client.callTool(params);
  console.log(JSON.stringify({ ...seen, result }));
  await client.close();
} catch (err) {
  console.log(JSON.stringify({ ...seen, error: String(err) }));
}
process.exit(0);
