import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOST_OPERATOR, HOST_READER } from '#api/host-api.ts';
import { LOG_READER, refuseRequest, SUBRESOURCES } from '#node/endpoint/peer.ts';
import { parseEndpointPath, type EndpointRoute } from '#node/endpoint/route.ts';

const UNKNOWN: EndpointRoute = { kind: 'unknown' };
const VMI = '/v1/namespaces/ns/virtualmachineinstances/db';

const CLAIM = '/v1/namespaces/ns/persistentvolumeclaims/data';

const paths: Record<string, EndpointRoute> = {
  '/healthz': { kind: 'healthz' },
  '/containerLogs/ns/pod/compute': { kind: 'logs', namespace: 'ns', pod: 'pod', container: 'compute' },
  [`${VMI}/pause`]: { kind: 'verb', verb: 'pause', namespace: 'ns', name: 'db' },
  [`${VMI}/softreboot`]: { kind: 'verb', verb: 'softreboot', namespace: 'ns', name: 'db' },
  [`${VMI}/console`]: { kind: 'console', namespace: 'ns', name: 'db' },
  [`${VMI}/vnc`]: { kind: 'vnc', namespace: 'ns', name: 'db' },
  [`${VMI}/vnc/screenshot`]: { kind: 'screenshot', namespace: 'ns', name: 'db' },
  [`${VMI}/vnc/screenshot/now`]: UNKNOWN,
  [`${VMI}/vnc/moon`]: UNKNOWN,
  [`${VMI}/portforward/22/tcp`]: {
    kind: 'port',
    namespace: 'ns',
    name: 'db',
    guestPort: { port: 22, protocol: 'tcp' },
  },
  [`${VMI}/portforward/53/udp`]: {
    kind: 'port',
    namespace: 'ns',
    name: 'db',
    guestPort: { port: 53, protocol: 'udp' },
  },
  [`${VMI}/portforward/22`]: UNKNOWN,
  [`${VMI}/portforward/0/tcp`]: UNKNOWN,
  [`${VMI}/portforward/65536/tcp`]: UNKNOWN,
  [`${VMI}/portforward/22/sctp`]: UNKNOWN,
  [`${VMI}/portforward/22/tcp/more`]: UNKNOWN,
  [`${CLAIM}/portforward/22/tcp`]: UNKNOWN,
  [`${CLAIM}/exportdisk`]: { kind: 'disk', verb: 'exportdisk', namespace: 'ns', claim: 'data' },
  [`${CLAIM}/importdisk`]: { kind: 'disk', verb: 'importdisk', namespace: 'ns', claim: 'data' },
  [`${CLAIM}/pause`]: UNKNOWN,
  [`${CLAIM}/exportdisk/now`]: UNKNOWN,
  [`${VMI}/exportdisk`]: UNKNOWN,
  '/v1/migrations': { kind: 'migrations' },
  '/v1/migrations/': UNKNOWN,
  '/v1/migrations/db': UNKNOWN,
  '/host/v1/list': { kind: 'host', verb: 'list' },
  '/host/v1/hotplugNic': { kind: 'host', verb: 'hotplugNic' },
  '/host/v1/reboot': UNKNOWN,
  '/host/v1/list/': UNKNOWN,
  '/host/v2/list': UNKNOWN,
  '/': UNKNOWN,
  '/healthz/': UNKNOWN,
  '/containerLogs/ns/pod': UNKNOWN,
  '/containerLogs/ns//compute': UNKNOWN,
  '/containerLogs/ns/pod/compute/more': UNKNOWN,
  '/containerLogs/ns/a%2Fb/compute': UNKNOWN,
  '/containerLogs/ns/%zz/compute': UNKNOWN,
  [VMI]: UNKNOWN,
  [`${VMI}/destroy`]: UNKNOWN,
  [`${VMI}/toString`]: UNKNOWN,
  '/v1/namespaces/ns/../../migrations': UNKNOWN,
  '/v1/namespaces/../virtualmachineinstances/db/pause': UNKNOWN,
  [`${VMI}/pause/now`]: UNKNOWN,
  '/v1/namespaces/ns/pods/db/pause': UNKNOWN,
};
for (const [path, want] of Object.entries(paths)) {
  test(`${path} is ${want.kind}`, () => assert.deepEqual(parseEndpointPath(path), want));
}

const peers: Record<string, { peer: string; path: string; may: boolean }> = {
  'the API server may read logs': { peer: LOG_READER, path: '/containerLogs/ns/pod/c', may: true },
  'the API server may not pause guests': { peer: LOG_READER, path: `${VMI}/pause`, may: false },
  'the API server may not open consoles': { peer: LOG_READER, path: `${VMI}/console`, may: false },
  'the subresources API may pause guests': { peer: SUBRESOURCES, path: `${VMI}/pause`, may: true },
  'the subresources API may open consoles': { peer: SUBRESOURCES, path: `${VMI}/console`, may: true },
  'the subresources API may open displays': { peer: SUBRESOURCES, path: `${VMI}/vnc`, may: true },
  'the subresources API may take screenshots': { peer: SUBRESOURCES, path: `${VMI}/vnc/screenshot`, may: true },
  'the subresources API may connect to ports': { peer: SUBRESOURCES, path: `${VMI}/portforward/22/tcp`, may: true },
  'the API server may not take screenshots': { peer: LOG_READER, path: `${VMI}/vnc/screenshot`, may: false },
  'a node may not connect to ports': { peer: 'system:node:node-2', path: `${VMI}/portforward/22/tcp`, may: false },
  'the host operator may not open displays': { peer: HOST_OPERATOR, path: `${VMI}/vnc`, may: false },
  'the subresources API may read logs': { peer: SUBRESOURCES, path: '/containerLogs/ns/pod/c', may: true },
  'the subresources API may read disks': { peer: SUBRESOURCES, path: `${CLAIM}/exportdisk`, may: true },
  'the API server may not read disks': { peer: LOG_READER, path: `${CLAIM}/exportdisk`, may: false },
  'the host operator may not read disks': { peer: HOST_OPERATOR, path: `${CLAIM}/exportdisk`, may: false },
  'a node may not read logs': { peer: 'system:node:node-2', path: '/containerLogs/ns/pod/c', may: false },
  'an administrator may not pause guests directly': { peer: 'admin', path: `${VMI}/pause`, may: false },
  'the host reader may list guests': { peer: HOST_READER, path: '/host/v1/list', may: true },
  'the host reader may read statistics': { peer: HOST_READER, path: '/host/v1/getAllVmStats', may: true },
  'the host reader may not create guests': { peer: HOST_READER, path: '/host/v1/create', may: false },
  'the host reader may not pause guests': { peer: HOST_READER, path: `${VMI}/pause`, may: false },
  'the host operator may create guests': { peer: HOST_OPERATOR, path: '/host/v1/create', may: true },
  'the host operator may list guests': { peer: HOST_OPERATOR, path: '/host/v1/list', may: true },
  'the host operator may not open consoles': { peer: HOST_OPERATOR, path: `${VMI}/console`, may: false },
  'the subresources API may not use the host API': { peer: SUBRESOURCES, path: '/host/v1/list', may: false },
  'the API server may not use the host API': { peer: LOG_READER, path: '/host/v1/list', may: false },
  'a node may migrate guests': { peer: 'system:node:node-2', path: '/v1/migrations', may: true },
  'a node without a name may not migrate guests': { peer: 'system:node:', path: '/v1/migrations', may: false },
  'a node may not open consoles': { peer: 'system:node:node-2', path: `${VMI}/console`, may: false },
  'the subresources API may not migrate guests': { peer: SUBRESOURCES, path: '/v1/migrations', may: false },
  'the API server may not migrate guests': { peer: LOG_READER, path: '/v1/migrations', may: false },
  'the host operator may not migrate guests': { peer: HOST_OPERATOR, path: '/v1/migrations', may: false },
  'a client without a name may not use unknown paths': { peer: '', path: '/nowhere', may: false },
  'every client may read the health': { peer: 'admin', path: '/healthz', may: true },
};
for (const [sentence, { peer, path, may }] of Object.entries(peers)) {
  test(sentence, () => {
    assert.equal(refuseRequest(peer, parseEndpointPath(path), 'GET', path)?.code, may ? undefined : 403);
  });
}
