/** The device map's calls to a node over HTTPS: who may make them, what is counted, and which responses are invalid. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOST_CODES, HOST_OPERATOR, HOST_READER, type HostAnswer, hostPath, type HostVm } from '#api/host-api.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import { createHostReader } from '#plane/components/host-reader.ts';
import { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import { createNodeConnections } from '#subresources/node-connections.ts';
import { issueServerCertificate } from '#test/support/extension-server.ts';
import { startFrontServer } from '#test/support/front-server.ts';
import { aNode, issuerOf } from '#test/support/kubelet-server.ts';
import { ADMIN } from '#test/support/test-api.ts';
import { FakeNode } from '#test/scenarios/subresources-scene.ts';

const VM: HostVm = {
  vmId: 'vmi-1',
  vmName: 'default/db',
  status: 'Up',
  emulatedMachine: 'pc-q35-7.2',
  memSize: 128,
  smp: '1',
  uuid: 'u',
  hash: 'h',
  deviceRevision: 1,
  devices: [{ type: 'disk', device: 'disk', deviceId: 'disk-a', address: { type: 'pci', bus: '0x01' } }],
};

/** A node that returns what a test sets. */
class HostNode extends FakeNode {
  answer: HostAnswer = { status: HOST_CODES.done, vmList: [VM] };
  readonly calls: string[] = [];
  readonly host = {
    call: async (verb: string, parameters: object): Promise<HostAnswer> => {
      this.calls.push(`${verb} ${JSON.stringify(parameters)}`);
      return this.answer;
    },
  };
}

test('the devices of guests are read over HTTPS', async (t) => {
  const front = await startFrontServer(t);
  const node = new HostNode();
  const served = issueServerCertificate(issuerOf(front.pkiDir), ['127.0.0.1']);
  const endpoint = await startNodeEndpoint({
    host: '127.0.0.1',
    port: 0,
    ...served,
    ca: front.caPem,
    agent: node,
    log: silentLog,
    clock: systemClock,
  });
  await front.create('/api/v1/nodes', aNode('node-1', endpoint.port));
  const client = createClient(
    createInProcessTransport({ handler: front.core.handler, user: ADMIN, userAgent: 'test' }),
  );
  const { signal } = new AbortController();
  const connectionsOf = (user: string) => {
    const { clientCertificate: cert = '', clientKey: key = '' } = front.accessOf(user);
    return createNodeConnections({ client, cert, key, ca: front.caPem, clock: systemClock });
  };
  const reader = connectionsOf(HOST_READER);
  const metrics = new MetricRegistry();
  const hosts = createHostReader(reader, metrics);

  await t.test('a complete response, as the node sent it', async () => {
    assert.deepEqual(await hosts.list('node-1', ['vmi-1'], { signal }), [VM]);
    assert.deepEqual(node.calls, ['list {"fullStatus":true,"vmList":["vmi-1"]}']);
    assert.match(metrics.text(), /^selfsame_host_list_calls_total\{node="node-1"\} 1$/m);
    assert.match(metrics.text(), /^selfsame_host_list_vms_total\{node="node-1"\} 1$/m);
  });

  await t.test(
    'the host reader may list but not destroy, the host operator may destroy, the subresources account may not list',
    async () => {
      const post = async (user: string, verb: 'list' | 'destroy') => {
        const connections = connectionsOf(user);
        const request = { node: 'node-1', path: hostPath(verb), body: Buffer.from('{}'), maxAnswerBytes: 9999, signal };
        const answer = await connections.post(request).then(
          () => 'may',
          (error: Error & { code?: number }) => String(error.code),
        );
        connections.close();
        return answer;
      };
      assert.deepEqual([await post(HOST_READER, 'list'), await post(HOST_READER, 'destroy')], ['may', '403']);
      assert.deepEqual(
        [await post(HOST_OPERATOR, 'destroy'), await post('selfsame-subresources', 'list')],
        ['may', '403'],
      );
    },
  );

  await t.test('a response over the size limit is refused', async () => {
    const request = { node: 'node-1', path: hostPath('list'), body: Buffer.from('{}'), maxAnswerBytes: 100, signal };
    await assert.rejects(reader.post(request), /larger than 100 bytes/);
  });

  await t.test('a refusal and an unreachable node are failures', async () => {
    node.answer = { status: HOST_CODES.unexpected };
    await assert.rejects(hosts.list('node-1', ['vmi-1'], { signal }), /16 Unexpected exception/);
    await assert.rejects(hosts.list('node-2', ['vmi-1'], { signal }), /there is no such node/);
    await endpoint.stop();
    await assert.rejects(hosts.list('node-1', ['vmi-1'], { signal }), /Cannot reach the agent of node "node-1"/);
  });

  reader.close();
  await front.stop();
});
