/** A host, guests and an outside machine as network namespaces, for tests of Services. Needs root. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { pid } from 'node:process';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { SERVICE_MARK } from '#api/network/service-mark.ts';

const run = promisify(execFile);
export const GATEWAY = '10.244.0.1';
export const HOST_OUTSIDE = '192.0.2.1';
export const OUTSIDE = '192.0.2.2';
export const PROBE_PORT = 8080;
const PROBE = new URL('namespace-probe.ts', import.meta.url).pathname;

export const guestIp = (n: number): string => `10.244.0.${10 + n}`;
export const guestIp6 = (n: number): string => `fd00:10:244::${10 + n}`;

/** A probe process in a namespace. */
export interface Probe {
  tcp(host: string, port: number): Promise<string>;
  udp(host: string, port: number): Promise<string>;
  dns(name: string, type?: 'A' | 'AAAA'): Promise<string>;
}

export interface ServiceHosts {
  /** The command prefix that enters the namespace of the host. */
  readonly enterHost: readonly [string, ...string[]];
  readonly host: Probe;
  readonly outside: Probe;
  /** Guests 1 to 3. */
  guest(n: number): Probe;
  /** Decides whether packets that a bridge forwards pass the rules of IP. */
  setBridgeFilter(isOn: boolean): Promise<void>;
  startDnsmasq(hostsDir: string): Promise<void>;
  close(): Promise<void>;
}

const GUESTS = [1, 2, 3];

export async function createServiceHosts(): Promise<ServiceHosts> {
  const nameOf = (what: string) => `sst${pid}-${what}`;
  const enter = (what: string): readonly [string, ...string[]] => ['nsenter', `--net=/run/netns/${nameOf(what)}`];
  const inside = async (what: string, ...command: string[]) => {
    const [program, ...args] = [...enter(what), ...command];
    await run(program, args, { timeout: 10_000 });
  };
  const ip = async (what: string, text: string) => await inside(what, 'ip', ...text.split(' '));
  const set = (what: string, key: string, value: string) => inside(what, 'sysctl', '-qw', `${key}=${value}`);
  const all = ['host', 'outside', ...GUESTS.map((n) => `g${n}`)];
  const children: ChildProcess[] = [];
  const close = async () => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    for (const what of all) await run('ip', ['netns', 'delete', nameOf(what)]).catch(() => {});
  };
  const startChild = async (what: string, command: readonly string[], readyLine: boolean) => {
    const [program, ...args] = [...enter(what), ...command];
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    children.push(child);
    await once(child, 'spawn');
    if (readyLine) await once(child.stdout, 'readable');
    return child;
  };
  const probes = new Map<string, Probe>();
  const startProbe = async (what: string) => {
    const child = await startChild(what, [process.execPath, PROBE, what, String(PROBE_PORT)], true);
    const waiting = new Map<number, (text: string) => void>();
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { id, text } = JSON.parse(line) as { id: number; text: string };
      waiting.get(id)?.(text);
      waiting.delete(id);
    });
    let last = 0;
    const ask = (request: object) =>
      new Promise<string>((resolve) => {
        const id = ++last;
        waiting.set(id, resolve);
        child.stdin.write(`${JSON.stringify({ ...request, id })}\n`);
      });
    probes.set(what, {
      tcp: (host, port) => ask({ op: 'tcp', host, port }),
      udp: (host, port) => ask({ op: 'udp', host, port }),
      dns: (name, type) => ask({ op: 'dns', host: GATEWAY, port: 53, name, type }),
    });
  };
  const probe = (what: string): Probe => {
    const found = probes.get(what);
    if (found === undefined) throw new Error(`there is no namespace ${what}`);
    return found;
  };

  try {
    for (const what of all) {
      await run('ip', ['netns', 'add', nameOf(what)]);
      await ip(what, 'link set lo up');
    }
    await set('host', 'net.ipv4.ip_forward', '1');
    await set('host', 'net.ipv6.conf.all.forwarding', '1');
    await ip('host', 'link add br0 type bridge');
    await ip('host', `addr add ${GATEWAY}/16 dev br0`);
    await ip('host', 'addr add fd00:10:244::1/64 dev br0 nodad');
    // With br_netfilter, the host looks for a guest from its link-local address, which must be usable at once (ADR 25).
    await set('host', 'net.ipv6.conf.br0.accept_dad', '0');
    await ip('host', 'link set br0 up');
    for (const n of GUESTS) {
      await ip('host', `link add port${n} type veth peer name eth0 netns ${nameOf(`g${n}`)}`);
      // A guest that reaches itself leaves through the port it came from.
      await ip('host', `link set port${n} master br0 up`);
      await ip('host', `link set port${n} type bridge_slave hairpin on`);
      await ip(`g${n}`, `addr add ${guestIp(n)}/16 dev eth0`);
      await ip(`g${n}`, `addr add ${guestIp6(n)}/64 dev eth0 nodad`);
      await ip(`g${n}`, 'link set eth0 up');
      await ip(`g${n}`, `route add default via ${GATEWAY}`);
      await ip(`g${n}`, 'route add default via fd00:10:244::1');
    }
    await ip('host', `link add out0 type veth peer name eth0 netns ${nameOf('outside')}`);
    await ip('host', `addr add ${HOST_OUTSIDE}/24 dev out0`);
    await ip('host', 'link set out0 up');
    await ip('outside', `addr add ${OUTSIDE}/24 dev eth0`);
    await ip('outside', 'link set eth0 up');
    await ip('outside', `route add 10.244.0.0/16 via ${HOST_OUTSIDE}`);
    await ip('host', `route add default via ${OUTSIDE}`);
    await inside('host', 'nft', FILTER);
    await Promise.all(all.map(startProbe));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    enterHost: enter('host'),
    host: probe('host'),
    outside: probe('outside'),
    guest: (n) => probe(`g${n}`),
    async setBridgeFilter(isOn) {
      for (const table of ['iptables', 'ip6tables'])
        await set('host', `net.bridge.bridge-nf-call-${table}`, isOn ? '1' : '0');
    },
    async startDnsmasq(hostsDir) {
      const options = [
        '--conf-file=/dev/null',
        '--no-resolv',
        '--no-hosts',
        '--pid-file=',
        '--user=root',
        '--keep-in-foreground',
      ];
      const served = ['--interface=br0', '--bind-interfaces', '--local=/cluster.local/', `--hostsdir=${hostsDir}`];
      await startChild('host', ['dnsmasq', ...options, ...served], false);
    },
    close,
  };
}

/** The filter of the network of guests, reduced to what Services must pass. */
const FILTER = `
table inet guests {
  chain forward {
    type filter hook forward priority 0; policy accept;
    ct state established,related accept
    ct mark & ${SERVICE_MARK} == ${SERVICE_MARK} accept
    iifname "out0" oifname "br0" drop
  }
  chain input {
    type filter hook input priority 0; policy accept;
    iifname "br0" udp dport 53 accept
    iifname "br0" ip protocol { tcp, udp } ct state new drop
  }
}`;
