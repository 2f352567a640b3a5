/** A real guest that has only a bridge interface: its ports and probes, at the address that its agent reports. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { accessSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE } from '#api/names.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '#api/network/network-attachment-definition.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { openConnection, type ApiConnection } from '#cli/connection/api-connection.ts';
import { isTrue } from '#kube/conditions.ts';
import { systemClock } from '#lib/clock.ts';
import { startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';

const BRIDGE = 'selfsame-t1';
const [NODE, GUEST] = ['192.168.231.1', '192.168.231.2'];
const PATH = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/bridged/portforward';
const SLOW = { timeout: 600_000 };
const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'pipe' });

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;
let guest: RealGuest;
let api: ApiConnection;

const skip = bridgeSkipReason();
function bridgeSkipReason(): string | false {
  try {
    ip('link', 'add', BRIDGE, 'type', 'bridge');
    ip('link', 'del', BRIDGE);
    accessSync('/dev/net/tun');
    return false;
  } catch (error) {
    return `bridges or tap devices cannot be made here: ${(error as Error).message}`;
  }
}

before(async () => {
  if (skip !== false) return;
  ip('link', 'add', BRIDGE, 'type', 'bridge');
  cleanUps.unshift(() => ip('link', 'del', BRIDGE));
  ip('addr', 'add', `${NODE}/24`, 'dev', BRIDGE);
  ip('link', 'set', BRIDGE, 'up');
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) }, { nodes: 1 });
  api = openConnection({ access: plane.server.access(), userAgent: 'test', clock: systemClock, readFile: () => '' });
  cleanUps.unshift(() => api.close());
  await plane.create(NETWORK_ATTACHMENT_DEFINITIONS, {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name: 'lan', namespace: 'default' },
    spec: { config: JSON.stringify({ cniVersion: '1.0.0', name: 'lan', type: 'bridge', bridge: BRIDGE }) },
  });
  await plane.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'bridged', namespace: 'default' },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1, timeoutSeconds: 5 },
          domain: {
            memory: { guest: '192Mi' },
            firmware: {
              kernelBoot: { kernelArgs: 'console=ttyS0 quiet no_timer_check', container: { image: GUEST_IMAGE } },
            },
            devices: { interfaces: [{ name: 'lan', bridge: {} }] },
          },
          networks: [{ name: 'lan', multus: { networkName: 'lan' } }],
        },
      },
    },
  });
  guest = plane.guest('bridged');
  await guest.awaitBoot();
}, SLOW);

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const open = (port: string) => api.openWebSocket(`${PATH}/${port}`, ['plain.kubevirt.io']);

test('without an address, the refusal says what to do', { ...SLOW, skip }, async () => {
  await assert.rejects(open('8080/tcp'), /its IPv4 address is unknown; run a guest agent/);
});

test('the guest is ready, and can be reached at the address that its agent reports', { ...SLOW, skip }, async () => {
  await guest.runCommand(`address ${GUEST}/24`, /GUEST address/);
  await guest.runCommand('serve', /GUEST serves/);
  await guest.awaitVmi('it is ready', (vmi) => isTrue(vmi?.status?.conditions, 'Ready'));
  const stream = await open('8080/tcp');
  stream.write('GET /healthz HTTP/1.0\r\n\r\n');
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nok$/);
  await assert.rejects(open('9/tcp'), /the guest refused the connection to port 9/);
});

test('a guest that reports the address of its node is refused', { ...SLOW, skip }, async () => {
  await guest.runCommand(`address ${NODE}/24`, /GUEST address/);
  await guest.awaitVmi('it reports another address', (vmi) => vmi?.status?.interfaces?.[0]?.ipAddress === NODE);
  await assert.rejects(open('8080/tcp'), /its node has no address in the network of .* on bridge/);
});
