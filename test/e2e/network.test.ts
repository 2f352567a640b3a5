/**
 * Real guests on the default network of the whole program: they reach each other and the outside, nothing else, and
 * their addresses and connections survive live migrations, restarts and kills.
 *
 *   "outside"  a network namespace that stands for the rest of the world, joined to that of the tests by a veth pair
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { GUEST_IMAGE } from '#api/names.ts';
import { NETWORK_ADDRESSES } from '#api/network/network-address.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { migrate, probe } from '#test/support/real-migrations.ts';
import { isNetworkPrivate, startRealPlane, type RealPlane } from '#test/support/real-guests.ts';

const SERVICES: ResourceType<KubeObject & { spec: object }> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
};
const namespace = 'default';
const OUTSIDE = `selfsame-test-outside-${process.pid}`;
const OUTSIDE_ADDRESS = '198.51.100.9';
const HOST_ADDRESS = '198.51.100.1';
const OUTSIDE_PORT = 9999;
const SINK_PORT = 7779;
const ECHO_PORT = 7777;
const MIGRATIONS = FULL_RUN ? 20 : 5;
const skip = !isNetworkPrivate && 'needs a network namespace of its own: run scripts/run-tests.sh as root';

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;
const addresses = new Map<string, string>();

before(async () => {
  if (skip) return;
  makeOutside();
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) });
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

function ip(...args: string[]): void {
  execFileSync('ip', args);
}

function makeOutside(): void {
  cleanUps.push(() => ip('netns', 'delete', OUTSIDE));
  ip('netns', 'add', OUTSIDE);
  ip('link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'out1', 'netns', OUTSIDE);
  ip('addr', 'add', `${HOST_ADDRESS}/24`, 'dev', 'out0');
  ip('link', 'set', 'dev', 'out0', 'up');
  ip('-n', OUTSIDE, 'addr', 'add', `${OUTSIDE_ADDRESS}/24`, 'dev', 'out1');
  ip('-n', OUTSIDE, 'link', 'set', 'dev', 'out1', 'up');
  ip('route', 'add', 'default', 'via', OUTSIDE_ADDRESS);
}

function aVm(name: string): VirtualMachine {
  const kernelBoot = {
    kernelArgs: 'console=ttyS0 quiet no_timer_check guest.cmd=serve',
    container: { image: GUEST_IMAGE },
  };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: {
      runStrategy: 'Always',
      template: {
        metadata: { labels: { app: name } },
        spec: {
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

/** Types a command, and returns what the guest answers after the word. */
async function ask(name: string, line: string, word = line): Promise<string> {
  const pattern = new RegExp(`GUEST ${word.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')} ?(.*)\\r?\\n`);
  const output = await plane.guest(name).runCommand(line, pattern);
  return (pattern.exec(output)?.[1] ?? '').trim();
}

async function recordedAddresses(name: string): Promise<string[] | undefined> {
  const record = await plane.client.get(VIRTUAL_MACHINE_IDENTITIES, { namespace, name });
  return record.spec.interfaces?.[0]?.addresses;
}

test(
  'guests have an address at once, which belongs to the VM and is in its record',
  { skip, timeout: 300_000 },
  async () => {
    for (const name of ['red', 'blue']) await plane.create(VIRTUAL_MACHINES, aVm(name));
    for (const name of ['red', 'blue']) {
      const guest = plane.guest(name);
      await guest.awaitVmi('it runs', (vmi) => vmi?.status?.phase === 'Running' && vmi.status.interfaces !== undefined);
      const [nic] = (await guest.vmi()).status?.interfaces ?? [];
      assert.match(nic?.ipAddress ?? '', /^10\.\d+\.\d+\.\d+$/);
      assert.equal(nic?.ipAddresses?.length, 2);
      const owned = (await plane.client.list(NETWORK_ADDRESSES)).items.filter(({ spec }) => spec.owner.name === name);
      assert.deepEqual(owned.map(({ spec }) => spec.address).sort(), nic?.ipAddresses?.toSorted());
      assert.deepEqual(await recordedAddresses(name), nic?.ipAddresses);
      addresses.set(name, nic?.ipAddress ?? '');
    }
    for (const name of ['red', 'blue']) {
      await plane.guest(name).awaitBoot();
      const console = await plane.guest(name).console();
      assert.match(console, /GUEST dhcp 10\.0\.2\.2 router=10\.0\.2\.1 dns=10\.\d+\.0\.1 mtu=1450 lease=4294967295 /);
      assert.match(
        console,
        new RegExp(`name=${name} search=default.svc.cluster.local svc.cluster.local cluster.local`),
      );
    }
  },
);

test('guests reach each other, by address and by the name of a Service', { skip, timeout: 120_000 }, async () => {
  await plane.create(SERVICES, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'blue-web', namespace },
    spec: { selector: { app: 'blue' }, ports: [{ port: 80, targetPort: 8080 }] },
  });
  assert.equal(await ask('red', `ping ${addressOf('blue')}`), 'ok');
  assert.equal(await ask('red', `fetch http://${addressOf('blue')}:8080/healthz`), 'ok');
  let last = '';
  for (let tries = 0; tries < 20 && last !== 'ok'; tries++) last = await ask('red', 'fetch http://blue-web/healthz');
  assert.equal(last, 'ok');
});

test('guests reach the outside, and neither the host nor its services', { skip, timeout: 120_000 }, async () => {
  assert.equal(await ask('red', `ping ${OUTSIDE_ADDRESS}`), 'ok');
  const { port } = new URL(plane.server.access().server);
  const gateway = addressOf('red').replace(/\.\d+\.\d+$/, '.0.1');
  for (const address of [HOST_ADDRESS, gateway, '10.0.2.1', '127.0.0.1']) {
    assert.equal(await ask('red', `knock ${address} ${port}`), 'closed', address);
  }
  assert.equal(await ask('red', 'knock 169.254.169.254 80'), 'closed');
  assert.equal(await ask('red', `knock ${addressOf('blue')} 8080`), 'open', 'knock can tell the difference');
});

/** A connection whose other end repeats each line: counts the lines, and fails at the first that is wrong. */
class EchoStream {
  lines = 0;
  problem: string | undefined;
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  #sent = 0;

  constructor(address: string) {
    this.#socket = connect({ host: address, port: ECHO_PORT });
    const reader = createInterface({ input: this.#socket });
    let isGreeted = false;
    reader.on('line', (line) => {
      if (!isGreeted) isGreeted = true;
      else if (line !== `line ${this.lines++}`) this.problem ??= `line ${this.lines - 1} came back as ${line}`;
    });
    reader.on('error', () => undefined);
    this.#socket.on('error', (error) => (this.problem ??= error.message));
    this.#socket.on('close', () => (this.problem ??= 'closed'));
    this.#timer = setInterval(() => this.#socket.write(`line ${this.#sent++}\n`), 20);
  }

  end(): void {
    this.problem ??= 'ended by the test';
    clearInterval(this.#timer);
    this.#socket.destroy();
  }
}

/** Counts the numbered lines that arrive outside. */
const OUTSIDE_SINK = `
import socket
listener = socket.socket(); listener.bind(('0.0.0.0', ${OUTSIDE_PORT})); listener.listen(1); print('listens', flush=True)
connection, _ = listener.accept()
for n, line in enumerate(connection.makefile('r')):
    if int(line) != n: print('bad', n, line, flush=True); break
    print('line', n, flush=True)
print('ended', flush=True)
`;

class OutsideSink {
  lines = 0;
  problem: string | undefined;
  readonly process: ChildProcess;
  readonly listens: Promise<unknown>;

  constructor() {
    const command = [`--net=/run/netns/${OUTSIDE}`, 'python3', '-c', OUTSIDE_SINK];
    this.process = spawn('nsenter', command, { stdio: ['ignore', 'pipe', 'inherit'] });
    cleanUps.unshift(() => this.process.kill('SIGKILL'));
    const reader = createInterface({ input: this.process.stdout ?? assert.fail() });
    this.listens = once(reader, 'line');
    reader.on('line', (line) => {
      if (line.startsWith('line ')) this.lines++;
      else if (line !== 'listens') this.problem ??= line;
    });
  }
}

async function awaitMore(what: string, count: () => Promise<number> | number): Promise<void> {
  const first = await count();
  for (let tries = 0; tries < 300; tries++) {
    if ((await count()) > first) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`nothing more arrives: ${what}`);
}

test(`connections survive ${MIGRATIONS} live migrations without a reset`, { skip, timeout: 900_000 }, async () => {
  const outside = new OutsideSink();
  await outside.listens;
  await ask('red', `sink ${SINK_PORT}`, 'sinks');
  await plane.guest('blue').runCommand(`stream ${addressOf('red')} ${SINK_PORT}\nsunk`, /GUEST sunk/);
  await plane.guest('red').runCommand(`stream ${OUTSIDE_ADDRESS} ${OUTSIDE_PORT}\nsunk`, /GUEST sunk/);
  const fromHost = new EchoStream(addressOf('red'));
  const sunk = async () => {
    const answer = await ask('red', 'sunk');
    assert.match(answer, /^\d+ 0$/, 'lines arrive in order, and the connection is open');
    return Number.parseInt(answer, 10);
  };
  try {
    for (let i = 0; i < MIGRATIONS; i++) {
      // The sender moves sometimes, too.
      await migrate(plane, i % 3 === 2 ? 'blue' : 'red');
      await awaitMore('from the host', () => fromHost.lines);
      await awaitMore('to the outside', () => outside.lines);
      await awaitMore('from guest to guest', sunk);
      assert.deepEqual([fromHost.problem, outside.problem], [undefined, undefined]);
    }
  } finally {
    fromHost.end();
  }
  for (const name of ['red', 'blue']) {
    assert.equal((await plane.guest(name).vmi()).status?.interfaces?.[0]?.ipAddress, addressOf(name));
  }
});

test(
  'a guest keeps its address after kill -9 of everything and after a restart',
  { skip, timeout: 300_000 },
  async () => {
    // The agents hold the output of the server open, so it ends with them.
    const ended = plane.server.kill('SIGKILL');
    for (const { pid, command } of plane.processes()) if (command.endsWith('/node')) process.kill(pid, 'SIGKILL');
    await ended;
    await plane.restart();
    assert.equal(await ask('red', `fetch http://${addressOf('blue')}:8080/healthz`), 'ok');
    const { facts } = await probe(plane, 'red');
    await plane.put('virtualmachines/red/restart');
    await plane.guest('red').awaitBoot({ afterBootId: facts['bootid'] ?? '' });
    assert.equal((await plane.guest('red').vmi()).status?.interfaces?.[0]?.ipAddress, addressOf('red'));
    let last = '';
    for (let tries = 0; tries < 20 && last !== 'ok'; tries++) {
      last = await ask('blue', `fetch http://${addressOf('red')}:8080/healthz`);
    }
    assert.equal(last, 'ok');
  },
);
