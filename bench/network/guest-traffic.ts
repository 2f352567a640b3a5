/** Transfers and round trips of guests that run `serve` and `measure` (guest/init), seen from the host. */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import { pause } from '../pause.ts';
import { median } from '../statistics.ts';
import { NAMESPACE } from '../vms/manifests.ts';

export const SUBNETS = '10.64.0.0/16,fd00:5e1f:64::/64';
export const BLOCK_BYTES = 64 * 1024;
export const GUEST_ARGUMENTS = 'console=ttyS0 quiet no_timer_check guest.cmd=serve guest.cmd=measure';
/** The ports of the guest: echo, receiver of blocks, commands. */
export const GUEST_PORTS = { echo: 7777, drain: 7780, commands: 7781 } as const;
const BOOT_TIMEOUT_MS = 600_000;
const TRANSFER_TIMEOUT_MS = 60_000;
const RETRY_MS = 500;

/** The address and ports at which a guest is reached. */
export interface Reachable {
  readonly address: string;
  readonly ports: Readonly<Record<keyof typeof GUEST_PORTS, number>>;
}

export function trafficVm(name: string): VirtualMachine {
  const firmware = { kernelBoot: { kernelArgs: GUEST_ARGUMENTS, container: { image: GUEST_IMAGE } } };
  const devices = { interfaces: [{ name: 'default', masquerade: {} }] };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          terminationGracePeriodSeconds: 0,
          domain: { memory: { guest: '128Mi' }, firmware, devices },
          networks: [{ name: 'default', pod: {} }],
        },
      },
    },
  };
}

/** Waits until the guest has booted: until it answers a command. */
export async function waitUntilServing(guest: Reachable): Promise<void> {
  const deadline = performance.now() + BOOT_TIMEOUT_MS;
  for (;;) {
    const answer = await ask(guest, 'ping 127.0.0.1 1', RETRY_MS * 20).catch(() => '');
    if (answer.includes('round-trip')) return;
    if (performance.now() > deadline) throw new Error(`Cannot measure: the guest at ${guest.address} does not answer`);
    await pause(RETRY_MS);
  }
}

/** Returns the bytes per second from one guest to another, by the clock of the sender. */
export async function pour(from: Reachable, to: Reachable, blocks: number): Promise<number> {
  const answer = await ask(from, `pour ${to.address} ${to.ports.drain} ${blocks}`);
  const [, begin, end] = /^poured (\S+) (\S+)$/.exec(answer) ?? [];
  if (begin === undefined || end === undefined)
    throw new Error(`Cannot measure a transfer: the guest said "${answer}"`);
  return (blocks * BLOCK_BYTES) / (Number(end) - Number(begin));
}

/** Returns the milliseconds of a round trip between guests, the average of pings. */
export async function pingBetween(from: Reachable, to: Reachable, count: number): Promise<number> {
  const answer = await ask(from, `ping ${to.address} ${count}`);
  const average = /= [\d.]+\/([\d.]+)\//.exec(answer)?.[1];
  if (average === undefined) throw new Error(`Cannot measure round trips: the guest said "${answer}"`);
  return Number(average);
}

/** Returns the bytes per second from this process to a guest, which answers when it has everything. */
export async function pourFromHost({ address, ports }: Reachable, blocks: number): Promise<number> {
  const socket = await open(address, ports.drain);
  const done = firstLine(socket, TRANSFER_TIMEOUT_MS);
  const from = performance.now();
  socket.write(`${blocks}\n`);
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let sent = 0; sent < blocks; sent++) {
    if (!socket.write(block)) await new Promise((resolve) => socket.once('drain', resolve));
  }
  await done;
  const seconds = (performance.now() - from) / 1000;
  socket.destroy();
  return (blocks * BLOCK_BYTES) / seconds;
}

/** Returns the median milliseconds in which a guest sends back a line. */
export async function echoFromHost({ address, ports }: Reachable, count: number): Promise<number> {
  const socket = await open(address, ports.echo);
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  await lines.next(); // The greeting.
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const from = performance.now();
    socket.write('x\n');
    await lines.next();
    times.push(performance.now() - from);
  }
  socket.destroy();
  return median(times);
}

async function ask({ address, ports }: Reachable, line: string, timeoutMs = TRANSFER_TIMEOUT_MS): Promise<string> {
  const socket = await open(address, ports.commands);
  try {
    socket.write(`${line}\n`);
    return await firstLine(socket, timeoutMs);
  } finally {
    socket.destroy();
  }
}

export async function open(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
    socket.setTimeout(10_000, () => socket.destroy(new Error(`${host}:${port} does not answer`)));
  });
  socket.setTimeout(0);
  return socket;
}

function firstLine(socket: Socket, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const lines = createInterface({ input: socket });
    lines.once('line', (line) => {
      clearTimeout(timer);
      resolve(line);
    });
    lines.once('close', () => reject(new Error('the guest closed the connection')));
    socket.once('error', reject);
  });
}
