/**
 * Real guests on two hosts, joined by a tunnel: they reach each other, and a guest that moves to the other host keeps its
 * address and its connections.
 *
 *   host "one"  the network namespace of the tests: API server, controllers and a node
 *   host "two"  a network namespace with a node, joined to the first by a veth pair. Its agent has a /run of its own, as
 *               on another machine
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE, TUNNEL_ADDRESS_ANNOTATION } from '#api/names.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS } from '#api/network/guest-network.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { createClient } from '#client/rest-client.ts';
import { NODES } from '#kube/core-kinds.ts';
import { removeSandboxes } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import { planNetwork, type NetworkPlan } from '#node/network/linux/network-plan.ts';
import { launchProgram, runProgram } from '#test/support/cluster-processes.ts';
import { killProcessesBelow } from '#test/support/processes-below.ts';
import { guestAccess, guestSubnets, isNetworkPrivate, type GuestPlane } from '#test/support/real-guests.ts';
import { migrate } from '#test/support/real-migrations.ts';
import { createTemporaryDir, openTransport, startServer, type Scope } from '#test/support/server-process.ts';

const namespace = 'default';
const SECOND = `selfsame-test-host-${process.pid}`;
/** The addresses of the hosts between hosts, by the names of their nodes. */
const HOSTS = { one: '203.0.113.1', two: '203.0.113.2' } as const;
const SINK_PORT = 7779;
const MIGRATIONS = 4;
const skip = !isNetworkPrivate && 'needs a network namespace of its own: run scripts/run-tests.sh as root';

type HostName = keyof typeof HOSTS;

const cleanUps: (() => unknown)[] = [];
const scope: Scope = { after: (fn) => void cleanUps.unshift(fn) };
const addresses = new Map<string, string>();
let plane: GuestPlane;

before(
  async () => {
    if (skip) return;
    makeHosts();
    plane = await startPlane();
  },
  { timeout: 300_000 },
);

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8' });
}

function makeHosts(): void {
  ip('netns', 'add', SECOND);
  scope.after(() => {
    // The DNS server of the network outlives the agent.
    for (const pid of ip('netns', 'pids', SECOND).split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
    ip('netns', 'delete', SECOND);
  });
  ip('link', 'add', 'wire', 'type', 'veth', 'peer', 'name', 'wire', 'netns', SECOND);
  scope.after(() => ip('link', 'delete', 'wire'));
  ip('addr', 'add', `${HOSTS.one}/24`, 'dev', 'wire');
  ip('link', 'set', 'dev', 'wire', 'up');
  ip('-n', SECOND, 'addr', 'add', `${HOSTS.two}/24`, 'dev', 'wire');
  for (const device of ['lo', 'wire']) ip('-n', SECOND, 'link', 'set', 'dev', device, 'up');
}

/** Starts everything as docs/any-cluster.md describes it for an embedded engine. */
async function startPlane(): Promise<GuestPlane> {
  const dir = createTemporaryDir(scope);
  const engineDir = join(dir, 'engine');
  const server = await startServer(scope, { dataDir: engineDir, command: ['engine', '--host', HOSTS.one] });
  const kubeconfig = join(engineDir, 'kubeconfig');
  await runProgram(scope, ['install', '--apply', '--kubeconfig', kubeconfig, ...guestSubnets()]);
  const own = join(dir, 'controllers.kubeconfig');
  await runProgram(scope, ['join', '--as', 'controllers', '--kubeconfig', kubeconfig, '--out', own]);
  const where = ['--listen-address', HOSTS.one, '--advertise-address', HOSTS.one, '--webhook-port', '0'];
  await launchProgram(scope, ['controllers', '--kubeconfig', own, ...where]).awaitLine('ready');
  const client = createClient(openTransport(scope, server.access()));
  removeFirstSide(planNetwork(await client.get(GUEST_NETWORKS, { name: DEFAULT_NETWORK })));
  for (const name of ['one', 'two'] as const) await startNode(dir, engineDir, name);
  const connected = { server, client, hasOtherAuthority: true };
  return { ...connected, ...guestAccess(() => connected) };
}

/** Removes the network from the first host at the end. On the second, it ends with the namespaces of the host. */
function removeFirstSide(plan: NetworkPlan): void {
  const dir = join('/run/selfsame/networks', plan.key);
  scope.after(async () => {
    await new LinuxHostSide({ plan, dir }).remove();
    rmSync(dir, { recursive: true, force: true });
  });
}

async function startNode(dir: string, engineDir: string, name: HostName): Promise<void> {
  const nodeDir = join(dir, name);
  const kubeconfig = join(dir, `${name}.kubeconfig`);
  await runProgram(scope, [
    'join',
    '--as',
    'node',
    '--name',
    name,
    '--engine-data-dir',
    engineDir,
    '--out',
    kubeconfig,
  ]);
  const access = ['--kubeconfig', kubeconfig, '--name', name, '--node-ip', HOSTS[name]];
  const guests = ['--data-dir', nodeDir, '--shared-dir', join(dir, 'shared'), '--accel', 'tcg'];
  const ownRun = ['unshare', '--mount', 'sh', '-ec', 'mount -t tmpfs tmpfs /run; exec "$@"', 'sh'];
  const wrapper = name === 'one' ? [] : ['nsenter', `--net=/run/netns/${SECOND}`, ...ownRun];
  scope.after(async () => {
    killProcessesBelow(nodeDir);
    await removeSandboxes(nodeDir);
  });
  await launchProgram(scope, ['node', ...access, ...guests], { wrapper }).awaitLine('ready');
}

function aVm(name: string, node: HostName): VirtualMachine {
  const kernelBoot = {
    kernelArgs: 'console=ttyS0 quiet no_timer_check guest.cmd=serve',
    container: { image: GUEST_IMAGE },
  };
  // A preference only, so that the guest can move.
  const preference = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: [node] }] };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          affinity: {
            nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] },
          },
          domain: {
            memory: { guest: '128Mi' },
            firmware: { kernelBoot },
            devices: { interfaces: [{ name: 'default', masquerade: {} }] },
          },
          networks: [{ name: 'default', pod: {} }],
        },
      },
    },
  };
}

const addressOf = (name: string) => addresses.get(name) ?? assert.fail(`${name} has no address`);
const nodeOf = async (name: string) => (await plane.guest(name).vmi()).status?.nodeName;

/** Types a command, and returns what the guest answers after the word. */
async function ask(name: string, line: string, word = line): Promise<string> {
  const pattern = new RegExp(`GUEST ${word.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')} ?(.*)\\r?\\n`);
  const output = await plane.guest(name).runCommand(line, pattern);
  return (pattern.exec(output)?.[1] ?? '').trim();
}

test('each node publishes the address of its host', { skip, timeout: 60_000 }, async () => {
  for (const name of ['one', 'two'] as const) {
    const { metadata } = await plane.client.get(NODES, { name });
    assert.equal(metadata.annotations?.[TUNNEL_ADDRESS_ANNOTATION], HOSTS[name]);
  }
});

test('guests of two hosts reach each other by address', { skip, timeout: 300_000 }, async () => {
  const nodes = { red: 'one', blue: 'two' } as const;
  for (const name of ['red', 'blue'] as const) await plane.create(VIRTUAL_MACHINES, aVm(name, nodes[name]));
  for (const name of ['red', 'blue'] as const) {
    const guest = plane.guest(name);
    await guest.awaitVmi('it runs', (vmi) => vmi?.status?.phase === 'Running' && vmi.status.interfaces !== undefined);
    assert.equal(await nodeOf(name), nodes[name]);
    addresses.set(name, (await guest.vmi()).status?.interfaces?.[0]?.ipAddress ?? '');
    await guest.awaitBoot();
  }
  assert.equal(await ask('red', `ping ${addressOf('blue')}`), 'ok');
  assert.equal(await ask('blue', `fetch http://${addressOf('red')}:8080/healthz`), 'ok');
});

test(
  `a connection goes on through ${MIGRATIONS} migrations between hosts, without a reset`,
  { skip, timeout: 600_000 },
  async () => {
    await ask('red', `sink ${SINK_PORT}`, 'sinks');
    await plane.guest('blue').runCommand(`stream ${addressOf('red')} ${SINK_PORT}\nsunk`, /GUEST sunk/);
    const awaitMore = async () => {
      let first: number | undefined;
      for (let tries = 0; tries < 300; tries++) {
        const answer = await ask('red', 'sunk');
        assert.match(answer, /^\d+ 0$/, 'lines arrive in order, and the connection is open');
        const count = Number.parseInt(answer, 10);
        if (count > (first ??= count)) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      assert.fail('nothing more arrives');
    };
    await awaitMore();
    // To the same host, to different hosts, and back.
    for (let i = 0; i < MIGRATIONS; i++) {
      await migrate(plane, i % 2 === 0 ? 'red' : 'blue');
      await awaitMore();
    }
    assert.deepEqual([await nodeOf('red'), await nodeOf('blue')], ['one', 'two']);
    for (const name of ['red', 'blue']) {
      assert.equal((await plane.guest(name).vmi()).status?.interfaces?.[0]?.ipAddress, addressOf(name));
    }
  },
);

test('the guests leave nothing on either host when they are deleted', { skip, timeout: 120_000 }, async () => {
  const ports = () =>
    [[], ['-n', SECOND]].flatMap((where) => {
      const links = JSON.parse(ip(...where, '-j', 'link', 'show', 'type', 'veth')) as { ifname: string }[];
      return links.map(({ ifname }) => ifname).filter((name) => name !== 'wire');
    });
  assert.equal(ports().length, 2);
  for (const name of ['red', 'blue']) await plane.client.delete(VIRTUAL_MACHINES, { namespace, name });
  for (const name of ['red', 'blue']) await plane.awaitObject(VIRTUAL_MACHINE_INSTANCES, name, (vmi) => !vmi);
  for (let tries = 0; ports().length > 0; tries++) {
    assert.ok(tries < 300, `ports of guests are left: ${ports().join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
