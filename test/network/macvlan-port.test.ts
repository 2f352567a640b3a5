/**
 * Guests on a macvlan, with real packets: the LAN reaches a guest only while its interface has the guest's MAC address, and
 * of two sides of a migration on one host only one can have it.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import {
  claimMacScript,
  hasOwnMacOnly,
  idleMacOf,
  releaseMacScript,
  type LinkDetails,
} from '#node/network/linux/bindings/own-mac-port.ts';
import { Namespace, namespaceSkipReason } from '#test/network/support/namespace.ts';

const GUEST_MAC = '02:00:00:aa:bb:01';
const GUEST_ADDRESS = '192.168.7.50';
const LAN_ADDRESS = '192.168.7.1';
/** Always answers, so that the end of the wait for a silent guest is known. */
const MARKER_ADDRESS = '192.168.7.2';
const PORT = { podInterface: 'pod1', tap: 'tap1', guestMac: GUEST_MAC };

/** A pod with a macvlan, and its guest, which is behind a veth pair instead of a tap. */
class Side {
  readonly pod: Namespace;
  readonly guest: Namespace;

  constructor(name: string, host: Namespace) {
    this.pod = new Namespace(`mvl-pod-${name}-${process.pid}`);
    this.guest = new Namespace(`mvl-guest-${name}-${process.pid}`);
    host.run(`ip link add pod1 link uplink type macvlan mode bridge && ip link set pod1 netns ${this.pod.name}`);
    this.pod.run(`
      ip link add k6t-pod1 address 02:00:00:00:00:00 type bridge stp_state 0 mcast_snooping 0
      ip link add tap1 type veth peer name eth0
      ip link set eth0 netns ${this.guest.name}
      ip link set tap1 master k6t-pod1 up
      ip link set k6t-pod1 up
      ip link set pod1 address ${idleMacOf(this.pod.path, 'pod1')} master k6t-pod1
      ip link set pod1 up`);
    this.guest.run(`ip link set eth0 address ${GUEST_MAC} up && ip address add ${GUEST_ADDRESS}/24 dev eth0`);
  }

  claim(): void {
    this.pod.run(claimMacScript(PORT));
  }

  release(): void {
    this.pod.run(releaseMacScript('pod1', idleMacOf(this.pod.path, 'pod1')));
  }

  async remove(): Promise<void> {
    await this.pod.remove();
    await this.guest.remove();
  }
}

suite('a guest on a macvlan', { skip: namespaceSkipReason() }, () => {
  let host: Namespace;
  let lan: Namespace;
  let marker: Namespace;
  let source: Side;
  let target: Side;

  before(() => {
    [host, lan, marker] = ['host', 'lan', 'marker'].map((name) => new Namespace(`mvl-${name}-${process.pid}`)) as [
      Namespace,
      Namespace,
      Namespace,
    ];
    host.run(`
      ip link add uplink type veth peer name wire
      ip link add switch type bridge
      ip link add wire-lan type veth peer name eth0 netns ${lan.name}
      ip link add wire-marker type veth peer name eth0 netns ${marker.name}
      for port in wire wire-lan wire-marker; do ip link set $port master switch up; done
      ip link set uplink up
      ip link set switch up`);
    lan.run(`ip link set eth0 up && ip address add ${LAN_ADDRESS}/24 dev eth0`);
    marker.run(`ip link set eth0 up && ip address add ${MARKER_ADDRESS}/24 dev eth0`);
    [source, target] = [new Side('a', host), new Side('b', host)];
  });
  after(async () => {
    for (const part of [source, target, host, lan, marker]) await part?.remove();
  });

  /** Reports whether the LAN reaches the guest, and the guest the LAN. */
  /** Tries several times, because packets may get lost on a busy machine. */
  async function assertConnected(side: Side): Promise<void> {
    for (let tries = 1; tries < 5; tries++) if ((await answers(side)).length === 2) break;
    assert.deepEqual(await answers(side), [true, true]);
  }

  async function answers({ guest }: Side): Promise<boolean[]> {
    const [toGuest] = await lan.reach([{ protocol: 'icmp', host: GUEST_ADDRESS }], MARKER_ADDRESS);
    const isReached = toGuest?.answered === true;
    if (!isReached) return [false];
    const [toLan] = await guest.reach([{ protocol: 'icmp', host: LAN_ADDRESS, answers: true }]);
    return [isReached, toLan?.answered === true];
  }

  test('the kind of the interface is known', () => {
    const [details] = JSON.parse(source.pod.run('ip -details -json link show dev pod1')) as LinkDetails[];
    assert.equal(hasOwnMacOnly(details!), true);
    const [veth] = JSON.parse(source.pod.run('ip -details -json link show dev tap1')) as LinkDetails[];
    assert.equal(hasOwnMacOnly(veth!), false);
  });

  test('is not reached before it is connected', async () => {
    assert.deepEqual(await answers(source), [false]);
  });

  test('is reached and reaches others, also after a repetition', async () => {
    source.claim();
    await assertConnected(source);
    source.claim();
    await assertConnected(source);
  });

  test('the target of a migration on the same host cannot take the address', async () => {
    assert.throws(() => target.claim(), /Address already in use|Device or resource busy/);
    await assertConnected(source);
  });

  test('the target is reached as soon as the source is silent', async () => {
    source.release();
    assert.deepEqual(await answers(source), [false]);
    target.claim();
    await assertConnected(target);
  });

  test('a failed migration gives the address back', async () => {
    target.release();
    source.claim();
    await assertConnected(source);
  });
});
