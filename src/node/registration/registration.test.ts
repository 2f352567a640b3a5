import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Informer } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { ApiError } from '#kube/api-error.ts';
import { LEASES, NODES } from '#kube/core-kinds.ts';
import { silentLog } from '#lib/log.ts';
import { aDescription } from '#node/registration/testing/sample-description.ts';
import { register } from '#node/registration/registration.ts';

test('a node is registered only when its Node has the address of the agent', async () => {
  const clock = new FakeClock();
  const api = new FakeApi();
  const { client, failures } = new FakeLink(api, [NODES, LEASES]);
  const stopping = new AbortController();
  const { signal } = stopping;
  const description = aDescription();
  const nodes = new Informer({ reader: client, type: NODES, clock, log: silentLog });
  const following = nodes.start({ signal });
  await nodes.waitForSync();
  // Node and Lease are written in any order.
  const unavailable = () => new ApiError(503, 'ServiceUnavailable', 'the server is unavailable');
  failures.push(unavailable(), unavailable(), unavailable(), unavailable());
  const registration = register({ client, nodes, description, clock, log: silentLog, signal });
  let isRegistered = false;
  void registration.registered.then(() => (isRegistered = true));
  await clock.advance(0);
  assert.equal(isRegistered, false);
  await clock.advance(10_000);
  assert.equal(isRegistered, true);
  assert.equal(nodes.get(description.name)?.status?.daemonEndpoints?.kubeletEndpoint?.Port, description.port);
  stopping.abort();
  await Promise.all([registration.stop(), following]);
});
