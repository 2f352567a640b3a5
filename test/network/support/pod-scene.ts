/**
 * A host with the two bridges of a network, in a namespace of its own, and guests on taps: the tap of a pod is joined with
 * one in a namespace that stands for the guest, so that a guest is a whole Linux.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import type { Stored } from '#kube/meta.ts';
import { formatIpAddress } from '#lib/ip-address.ts';
import { silentLog } from '#lib/log.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { HostSide } from '#node/network/linux/host-port.ts';
import { LinuxPodNetworks } from '#node/network/linux/linux-pod-networks.ts';
import { planNetwork, type NetworkPlan } from '#node/network/linux/network-plan.ts';
import type { NetworkRequest, TapRequest } from '#node/network/pod-networks.ts';
import { PROGRAM } from '#test/network/support/guest-programs.ts';

export const podSkipReason = process.getuid?.() === 0 ? false : 'only root can make network namespaces';

export const GATEWAY = '10.244.0.1';
export const GATEWAY_6 = 'fd00:10:244::1';
export const GUEST_MAC = '52:54:00:00:00:05';

const PATIENCE_MS = 15_000;

type AfterStep = (step: string) => void | Promise<void>;

/** A network namespace with programs in it. */
export class TestNamespace {
  readonly name: string;
  readonly #programs = new Set<ChildProcess>();

  constructor(kind: string) {
    this.name = `sst-${kind}-${randomBytes(4).toString('hex')}`;
    execFileSync('ip', ['netns', 'add', this.name]);
    this.run('ip link set lo up');
  }

  get path(): string {
    return `/run/netns/${this.name}`;
  }

  run(script: string): string {
    return runIn(this.path, script);
  }

  /** Starts a program of guest-programs.ts. */
  start(...args: readonly string[]): RunningProgram {
    const child = spawn('nsenter', [`--net=${this.path}`, 'python3', '-c', PROGRAM, ...args], { stdio: 'pipe' });
    this.#programs.add(child);
    return new RunningProgram(child, args.join(' '));
  }

  close(): void {
    for (const child of this.#programs) child.kill('SIGKILL');
    execFileSync('ip', ['netns', 'delete', this.name]);
  }
}

export function runIn(namespace: string, script: string): string {
  return execFileSync('nsenter', [`--net=${namespace}`, 'sh', '-e'], {
    input: script,
    encoding: 'utf8',
    stdio: 'pipe',
  });
}

/** A program that prints lines. */
export class RunningProgram {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #waiting = new Set<() => void>();
  #end: string | undefined;

  constructor(child: ChildProcess, name: string) {
    this.#child = child;
    this.#name = name;
    if (child.stdout === null || child.stderr === null) throw new Error('the program has no output');
    createInterface({ input: child.stdout }).on('line', (line) => this.#add(line));
    createInterface({ input: child.stderr }).on('line', (line) => this.#add(`error: ${line}`));
    child.on('close', (code, signal) => {
      this.#end = `ended with ${code ?? signal}`;
      for (const wake of this.#waiting) wake();
    });
  }

  /** Waits until a line has been printed that satisfies the condition; rejects if the program ends before. */
  async until(condition: (line: string) => boolean): Promise<string> {
    for (let at = 0; ; at++) {
      while (at >= this.lines.length) {
        if (this.#end !== undefined)
          throw new Error(`"${this.#name}" ${this.#end}:\n${this.lines.slice(-15).join('\n')}`);
        await this.#change();
        this.#waiting.clear();
      }
      const line = this.lines[at] ?? '';
      if (condition(line)) return line;
    }
  }

  /** Waits for a line or the end; for a limited time, because a program that says nothing would block the test. */
  async #change(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const problem = () =>
      reject(new Error(`"${this.#name}" printed nothing more:\n${this.lines.slice(-15).join('\n')}`));
    const timer = setTimeout(problem, PATIENCE_MS);
    this.#waiting.add(resolve);
    await promise.finally(() => clearTimeout(timer));
  }

  /** Waits for this many further lines. */
  async more(count: number): Promise<void> {
    const wanted = this.lines.length + count;
    await this.until(() => this.lines.length >= wanted);
  }

  /** Ends its input, which every program takes as the request to end. */
  finish(): void {
    this.#child.stdin?.end();
  }

  #add(line: string): void {
    this.lines.push(line);
    for (const wake of this.#waiting) wake();
  }
}

export class PodScene {
  readonly host = new TestNamespace('host');
  readonly plan: NetworkPlan;
  readonly clock = new FakeClock();
  /** The ports that are allowed now. */
  readonly allowed = new Set<string>();
  readonly #network: Stored<GuestNetwork>;
  readonly directories: string[] = [];
  /** Fails what repairs the host's side: everything, or all but the permissions of ports. */
  hostProblem: { readonly affects: 'everything' | 'others'; readonly error: Error } | undefined;
  readonly #open: LinuxPodNetworks[] = [];
  readonly #guests: TestNamespace[] = [];

  constructor(t: TestContext, subnets: readonly string[] = ['10.244.0.0/16', 'fd00:10:244::/64']) {
    t.after(() => this.#dispose());
    this.#network = {
      apiVersion: 'network.selfsame.io/v1',
      kind: 'GuestNetwork',
      metadata: {
        name: 'default',
        uid: this.host.name,
        resourceVersion: '1',
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
      spec: { subnets: [...subnets] },
    };
    this.plan = planNetwork(this.#network);
  }

  /** Returns the networks of a node of this host. The directory of an earlier one stands for a restart of its agent. */
  async node(
    options: {
      directory?: string;
      afterStep?: AfterStep;
      /** Called before the default network is known. */
      beforeNetwork?: (pods: LinuxPodNetworks) => Promise<void>;
    } = {},
  ): Promise<{ pods: LinuxPodNetworks; directory: string }> {
    const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'selfsame-pods-')));
    if (options.directory === undefined) this.directories.push(directory);
    const pods = new LinuxPodNetworks({
      nodeDir: directory,
      clock: this.clock,
      log: silentLog,
      namespace: this.host.path,
      hostSide: () => this.#hostSide(),
      ...(options.afterStep && { afterStep: options.afterStep }),
    });
    await pods.adopt();
    await options.beforeNetwork?.(pods);
    await pods.setDefaultNetwork(this.#network).catch((error: unknown) => {
      if (error !== this.hostProblem?.error) throw error;
    });
    this.#open.push(pods);
    return { pods, directory };
  }

  /** Treats an agent as killed: it never continues, and nobody waits for it. */
  abandon(pods: LinuxPodNetworks): void {
    this.#open.splice(this.#open.indexOf(pods), 1);
  }

  /** Creates a guest without any connection. Its interface is eth0. */
  guest(mac = GUEST_MAC): TestNamespace {
    const guest = new TestNamespace('guest');
    this.#guests.push(guest);
    guest.run(`for i in all default; do echo 0 >/proc/sys/net/ipv6/conf/$i/accept_dad; done
      ip tuntap add dev eth0 mode tap; ip link set dev eth0 address ${mac} mtu ${this.plan.mtu} up`);
    return guest;
  }

  /** Joins the tap of a pod with the interface of a guest; the returned function separates them. */
  async join(guest: TestNamespace, podNamespace: string, tap = 'tap0'): Promise<() => Promise<void>> {
    const relay = this.host.start('relay', guest.path, 'eth0', podNamespace, tap);
    await relay.until((line) => line === 'ready');
    return async () => {
      relay.finish();
      await relay.until((line) => line === 'end');
    };
  }

  /** Returns what the tested code has left behind, which should be nothing. */
  async leftovers(): Promise<string[]> {
    const leftovers = this.host
      .run('ip -json link show')
      .match(new RegExp(`"${this.plan.portPrefix}\\w*"|"veth\\w*"`, 'g'));
    const files: string[] = [];
    for (const directory of this.directories) {
      files.push(...(await readdir(join(directory, 'network'), { recursive: true })));
    }
    return [...(leftovers ?? []), ...this.allowed, ...files.filter((name) => name !== 'cni' && name !== 'dhcp')];
  }

  /** Removes everything, also after a failure. */
  async #dispose(): Promise<void> {
    for (const pods of this.#open) await pods.close();
    for (const directory of this.directories) {
      const { pods } = await this.node({ directory });
      for (const id of pods.list()) await pods.detach(id);
      await pods.close();
      await rm(directory, { recursive: true, force: true });
    }
    for (const namespace of [this.host, ...this.#guests]) namespace.close();
  }

  #hostSide(): HostSide {
    const { plan, host, allowed } = this;
    return {
      plan,
      ensure: async () => {
        if (this.hostProblem !== undefined) throw this.hostProblem.error;
        const bridges = [plan.bridge, plan.silentBridge].map(
          (bridge) =>
            `ip link show dev ${bridge} >/dev/null 2>&1 || ip link add name ${bridge} type bridge mcast_snooping 0`,
        );
        const addresses = plan.gateways.map(
          (gateway, i) =>
            `ip address replace ${formatIpAddress(gateway)}/${plan.subnets[i]?.prefix} dev ${plan.bridge} nodad`,
        );
        const up = `ip link set dev ${plan.bridge} address ${plan.gatewayMac} mtu ${plan.mtu} up`;
        host.run(
          [...bridges, up, ...addresses.map((line) => (line.includes(':') ? line : line.replace(' nodad', '')))].join(
            '\n',
          ),
        );
      },
      allow: async ({ hostInterface }) => {
        if (this.hostProblem?.affects === 'everything') throw this.hostProblem.error;
        allowed.add(hostInterface);
      },
      forget: async (hostInterface) => void allowed.delete(hostInterface),
      setPeers: async () => assert.fail('a host of this scene has no peers'),
    };
  }
}

export function aTap(overrides: Partial<TapRequest['attachment']> = {}, tap = 'tap0'): TapRequest {
  return {
    tap,
    macAddress: GUEST_MAC,
    attachment: {
      podInterface: 'eth0',
      network: { type: 'default' },
      binding: 'masquerade',
      addresses: ['10.244.0.5/16', 'fd00:10:244::5/64'],
      guestAddresses: ['10.0.2.2/24', 'fd10:0:2::2/120'],
      ...overrides,
    },
  };
}

export function aRequest(interfaces: readonly TapRequest[] = [aTap()], id = 'guest-1'): NetworkRequest {
  return {
    id,
    network: {
      pod: { namespace: 'default', name: 'virt-launcher-db', uid: `uid-${id}` },
      hostname: 'db',
      searchDomains: ['default.svc.cluster.local'],
    },
    user: { uid: 0x7000_0001, gid: 0x7000_0001 },
    interfaces,
  };
}

/** Gives a guest the addresses that masquerade has, without DHCP. */
export function configureMasqueraded(guest: TestNamespace): void {
  guest.run(`
    ip address replace 10.0.2.2/24 dev eth0
    ip route replace default via 10.0.2.1
    ip address replace fd10:0:2::2/120 dev eth0 nodad
    ip -6 route replace default via fd10:0:2::1 dev eth0`);
}
