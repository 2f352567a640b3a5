import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { notFound, timeout } from '#kube/api-error.ts';
import { systemClock } from '#lib/clock.ts';
import { createLog } from '#lib/log.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';

const cases: Record<string, { fails: (leave: () => void) => Error; logged: RegExp | '' }> = {
  'a request that fails is logged': { fails: () => new Error('no route to the node'), logged: /no route to the node/ },
  'a request that its client ends early is not logged': {
    fails(leave) {
      leave();
      return new Error('aborted');
    },
    logged: '',
  },
  'a request that must wait is not logged': {
    fails: () => timeout('persistentvolumeclaim "disk" is still not bound to a volume'),
    logged: '',
  },
  'a refused request is not logged': { fails: () => notFound(VIRTUAL_MACHINE_INSTANCES, 'db'), logged: '' },
};
for (const [title, { fails, logged }] of Object.entries(cases)) {
  test(title, async () => {
    let lines = '';
    const client = new AbortController();
    const api = createSubresourcesApi({
      client: { get: () => Promise.reject(fails(() => client.abort())) } as unknown as Client,
      nodes: {} as NodeConnections,
      log: createLog('warn', { write: (line) => (lines += line) }),
      clock: systemClock,
    });
    await api({
      method: 'GET',
      path: '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/db/portforward/22',
      query: new URLSearchParams(),
      user: { name: 'ada', groups: [] },
      body: () => Promise.resolve(Buffer.alloc(0)),
      upgrade: 'websocket',
      signal: client.signal,
    });
    if (logged === '') assert.equal(lines, '');
    else assert.match(lines, logged);
  });
}
