/**
 * The floors of traffic: two QEMUs with the same kernel, initrd and processor, without namespaces, rules and sandboxes:
 * on taps of one bridge, or with QEMU's user-mode network, in which a guest reaches the other one through a port of the
 * host.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '../engine-process.ts';
import { GUEST_ARGUMENTS, GUEST_PORTS, type Reachable } from './guest-traffic.ts';

const BRIDGE = 'bare0';
const HOST_ADDRESS = '10.65.0.1';
/** The address of the host in QEMU's user-mode network. */
const USER_MODE_HOST = '10.0.2.2';

export interface GuestKernel {
  readonly kernelPath: string;
  readonly initrdPath: string;
}

export class BareGuests {
  readonly #kernel: GuestKernel;
  readonly #children: ChildProcess[] = [];

  constructor(kernel: GuestKernel) {
    this.#kernel = kernel;
  }

  /** Starts two guests on a bridge, with addresses from a DHCP server as our guests. */
  startOnBridge(): Reachable[] {
    ip('link', 'add', BRIDGE, 'mtu', '1450', 'type', 'bridge');
    ip('addr', 'add', `${HOST_ADDRESS}/24`, 'dev', BRIDGE);
    ip('link', 'set', 'dev', BRIDGE, 'up');
    const guests = [2, 3].map((n) => ({ address: `10.65.0.${n}`, mac: `02:00:00:00:65:0${n}`, tap: `bare-tap${n}` }));
    const hosts = guests.map(({ mac, address }) => `--dhcp-host=${mac},${address},infinite`);
    const range = ['--dhcp-range=10.65.0.2,static,255.255.255.0,infinite', '--dhcp-option=option:mtu,1450'];
    const server = ['--port=0', '--conf-file=/dev/null', '--keep-in-foreground', '--leasefile-ro', '--no-ping'];
    this.#spawn('dnsmasq', [
      ...server,
      `--interface=${BRIDGE}`,
      '--bind-interfaces',
      '--pid-file=',
      ...range,
      ...hosts,
    ]);
    for (const { tap, mac } of guests) {
      ip('tuntap', 'add', tap, 'mode', 'tap');
      ip('link', 'set', 'dev', tap, 'mtu', '1450', 'master', BRIDGE, 'up');
      this.#start(`tap,id=net0,ifname=${tap},script=no,downscript=no,vhost=off`, mac);
    }
    return guests.map(({ address }) => ({ address, ports: GUEST_PORTS }));
  }

  /** Returns the guests as this process reaches them, and the second as the first one reaches it. */
  async startInUserMode(): Promise<{ readonly guests: Reachable[]; readonly second: Reachable }> {
    const guests: Reachable[] = [];
    for (const n of [2, 3]) {
      const ports = { echo: await freePort(), drain: await freePort(), commands: await freePort() };
      const forwards = (['echo', 'drain', 'commands'] as const).map(
        (name) => `hostfwd=tcp:127.0.0.1:${ports[name]}-:${GUEST_PORTS[name]}`,
      );
      this.#start(['user,id=net0', ...forwards].join(), `02:00:00:00:66:0${n}`);
      guests.push({ address: '127.0.0.1', ports });
    }
    const [, right] = guests;
    if (right === undefined) throw new Error('Cannot measure: there are no two guests');
    return { guests, second: { ...right, address: USER_MODE_HOST } };
  }

  async stop(): Promise<void> {
    for (const child of this.#children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
  }

  #start(netdev: string, mac: string): void {
    const { kernelPath, initrdPath } = this.#kernel;
    this.#spawn('qemu-system-x86_64', [
      ...['-no-user-config', '-nodefaults', '-display', 'none', '-serial', 'null', '-m', '131064k'],
      ...['-machine', 'type=pc-q35-7.2,accel=tcg,usb=off,smm=off,dump-guest-core=off', '-cpu', 'max', '-smp', '1'],
      ...['-kernel', kernelPath, '-initrd', initrdPath, '-append', GUEST_ARGUMENTS],
      ...['-device', 'pcie-root-port,id=rp0,bus=pcie.0,addr=0x2.0x0,chassis=1'],
      ...['-netdev', netdev, '-device', `virtio-net-pci,netdev=net0,bus=rp0,addr=0x0,mac=${mac}`],
    ]);
  }

  #spawn(program: string, args: readonly string[]): void {
    this.#children.push(spawn(program, [...args], { stdio: ['ignore', 'ignore', 'inherit'] }));
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', [...args]);
}
