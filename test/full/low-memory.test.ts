/** The server runs out of memory under load and dies. With more memory it starts again, and no acknowledged write is lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import { TransportError } from '#client/transport.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { createTemporaryDir, openTransport, startServer } from '#test/support/server-process.ts';

const NAMESPACE = 'default';
/** Enough to start, and for some hundred objects. */
const HEAP_MIB = 96;
const OBJECT_BYTES = 200_000;
const WRITERS = 4;
/** Far more than fit. */
const MOST_OBJECTS = 4 * HEAP_MIB * 5;

/** Creates objects until the connection breaks; returns the names of those that were acknowledged. */
async function createUntilDeath(client: Client, writer: number): Promise<string[]> {
  const names: string[] = [];
  for (let i = 0; i < MOST_OBJECTS / WRITERS; i++) {
    const name = `w${writer}-${i}`;
    const data = { pad: `${name} `.repeat(OBJECT_BYTES / (name.length + 1)) };
    try {
      await client.create(CONFIG_MAPS, {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: NAMESPACE }, data },
      });
    } catch (error) {
      if (error instanceof TransportError) return names;
      throw error;
    }
    names.push(name);
  }
  return assert.fail('the server survived');
}

test('a server without memory loses no acknowledged write', async (t) => {
  const dataDir = createTemporaryDir(t);
  const poor = await startServer(t, { dataDir, env: { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` } });
  const client = createClient(openTransport(t, poor.access()));
  const writers = Array.from({ length: WRITERS }, (_, writer) => createUntilDeath(client, writer));
  const acknowledged = (await Promise.all(writers)).flat();
  const { signal, stderr } = await poor.exited;
  assert.equal(signal, 'SIGABRT', stderr);
  assert.ok(acknowledged.length > 10, `${acknowledged.length} writes`);

  const rich = await startServer(t, { dataDir });
  const { items } = await createClient(openTransport(t, rich.access())).list(CONFIG_MAPS, { namespace: NAMESPACE });
  const found = new Map(items.map((item) => [item.metadata.name, item['data'] as { pad?: string }]));
  for (const name of acknowledged)
    assert.ok(found.get(name)?.pad?.startsWith(`${name} ${name} `), `${name} was acknowledged and is lost`);
  t.diagnostic(`${acknowledged.length} acknowledged writes`);
});
