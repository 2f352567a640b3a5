/**
 * The default network on a host: its bridges, rules, forwarding and DNS server. Several agents of one plane on a machine
 * share all of it, and each may create or repair it at any time. Two planes share only the guard (guard-rules.ts).
 *
 * Permissions of ports are elements of the rules, so they outlive this process. It also remembers its own, and loads
 * them again with each `ensure`, in case somebody flushed the rules of the host.
 */
import { resolve } from 'node:path';
import type { GuestBridgePort, HostSide } from '#node/network/linux/host-port.ts';
import { buildBridgeRules, buildPortElements, PORT_SETS } from '#node/network/linux/host/bridge-rules.ts';
import { ensureBridges, listBridges, removeBridges } from '#node/network/linux/host/bridges.ts';
import { DnsServer } from '#node/network/linux/host/dns-server.ts';
import { findForeignRules } from '#node/network/linux/host/foreign-rules.ts';
import { decideForwarding, FORWARDING_SETTINGS } from '#node/network/linux/host/forwarding.ts';
import {
  joinGuards,
  readGuardMemory,
  removeGuardMemory,
  writeGuardMemory,
} from '#node/network/linux/host/forwarding-memory.ts';
import { checkSubnets } from '#node/network/linux/host/free-subnets.ts';
import {
  buildGuardElements,
  buildGuardRules,
  GUARD_TABLE,
  quote,
  type ForwardingGuard,
} from '#node/network/linux/host/guard-rules.ts';
import {
  HostCommandError,
  readSettings,
  runOnHost,
  writeSettings,
  type RunOnHost,
} from '#node/network/linux/host/host-commands.ts';
import { devicesOutside, readRoutes } from '#node/network/linux/host/host-routes.ts';
import { buildHostRules } from '#node/network/linux/host/host-rules.ts';
import {
  buildDeletion,
  deleteTable,
  loadRules,
  readElements,
  type RuleSet,
} from '#node/network/linux/host/rule-sets.ts';
import { ensureTunnel, parsePeers, removeTunnel, type TunnelPeers } from '#node/network/linux/host/tunnel.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

/** The longest name of a network interface. */
const INTERFACE_CHARACTERS = 15;
const MAC_ADDRESS = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i;

interface HostSideOptions {
  readonly plan: NetworkPlan;
  /**
   * A directory that all agents of the plane on this machine share, and no other plane. Other users must be able to
   * enter it and its parents, because the DNS server is not root. Created if it is missing.
   */
  readonly dir: string;
  /** The path of the network namespace of the host; that of this process if absent. */
  readonly namespace?: string;
}

export class LinuxHostSide implements HostSide {
  readonly plan: NetworkPlan;
  readonly #dir: string;
  readonly #run: RunOnHost;
  readonly #dns: DnsServer;
  readonly #allowed = new Map<string, GuestBridgePort>();
  #tunnel: TunnelPeers | undefined;
  /** The end of the last call; calls run one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ plan, dir, namespace }: HostSideOptions) {
    this.plan = plan;
    this.#dir = resolve(dir);
    this.#run = runOnHost(namespace);
    this.#dns = new DnsServer({ plan, dir: this.#dir, run: this.#run });
  }

  ensure(): Promise<void> {
    return this.#inTurn(async () => {
      const routes = await readRoutes(this.#run);
      checkSubnets(this.plan.subnets, routes, this.plan.bridge);
      await this.#checkFamilies();
      // Rules come first, so that no bridge is ever without them.
      await this.#loadRules();
      await ensureBridges(this.#run, this.plan);
      await this.#ensureForwarding();
      if (this.#tunnel !== undefined) await ensureTunnel(this.#run, this.plan, this.#tunnel);
      await this.#dns.ensure();
    });
  }

  allow(port: GuestBridgePort): Promise<void> {
    checkPort(port, this.plan);
    return this.#inTurn(async () => {
      const stale = await this.#readPort(port.hostInterface);
      await this.#loadRules(stale, port);
      this.#allowed.set(port.hostInterface, port);
    });
  }

  forget(hostInterface: string): Promise<void> {
    return this.#inTurn(async () => {
      this.#allowed.delete(hostInterface);
      const stale = await this.#readPort(hostInterface);
      if (stale !== '') await this.#run('nft', ['-f', '-'], stale);
    });
  }

  setPeers(local: string, peers: readonly string[]): Promise<void> {
    const tunnel = parsePeers(local, peers);
    return this.#inTurn(async () => {
      await ensureTunnel(this.#run, this.plan, tunnel);
      // Only now, so that a tunnel that never worked does not keep `ensure` from making the network of this host.
      this.#tunnel = tunnel;
    });
  }

  /** Returns what keeps the network from working and is not ours to change, each as a sentence for people. */
  async findProblems(): Promise<string[]> {
    try {
      return await findForeignRules(this.#run, this.plan);
    } catch (error) {
      if (error instanceof HostCommandError && error.isMissing) {
        return ['nftables is not installed, but the network of guests needs it; on Debian: apt-get install nftables'];
      }
      throw error;
    }
  }

  /** Removes everything of the network from the host. The ports of guests stay, without a bridge. */
  remove(): Promise<void> {
    return this.#inTurn(async () => {
      this.#allowed.clear();
      this.#tunnel = undefined;
      await this.#dns.remove();
      await removeTunnel(this.#run, this.plan);
      await removeBridges(this.#run, this.plan);
      for (const { family, table } of this.#ruleSets()) await deleteTable(this.#run, { family, table });
      await this.#removeGuard();
      await removeGuardMemory(this.#dir);
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  #ruleSets(): RuleSet[] {
    const { table } = this.plan;
    return [
      { family: 'bridge', table, text: buildBridgeRules(this.plan) },
      { family: 'inet', table, text: buildHostRules(this.plan) },
    ];
  }

  /** Loads the rules if they are missing or outdated, then the permissions of all ports of this process. */
  async #loadRules(deletions = '', added?: GuestBridgePort): Promise<void> {
    const ports = new Map(this.#allowed);
    if (added !== undefined) ports.set(added.hostInterface, added);
    await loadRules(this.#run, this.#ruleSets(), deletions + this.#buildPermissions([...ports.values()]));
  }

  #buildPermissions(ports: readonly GuestBridgePort[]): string {
    const elements = ports.map(buildPortElements);
    return PORT_SETS.map((set) => {
      const all = elements.flatMap((element) => element[set]);
      return all.length === 0 ? '' : `add element bridge ${this.plan.table} ${set} { ${all.join(', ')} }\n`;
    }).join('');
  }

  /** Returns the commands that delete all permissions of a port. */
  async #readPort(hostInterface: string): Promise<string> {
    const texts: string[] = [];
    for (const set of PORT_SETS) {
      const found = await readElements(this.#run, 'bridge', this.plan.table, set);
      const own = found
        .filter(([name]) => name === hostInterface)
        .map(([name = '', value]) => `${quote(name)} . ${value}`);
      texts.push(buildDeletion('bridge', this.plan.table, set, own));
    }
    return texts.join('');
  }

  async #checkFamilies(): Promise<void> {
    const six = this.plan.subnets.some(({ address }) => address.family === 6);
    if (!six || (await readSettings(this.#run, ['ipv6/conf/all/forwarding'])).size > 0) return;
    throw new Error(
      'Cannot create the network of guests: it has an IPv6 subnet, but IPv6 is switched off in the kernel of this host; ' +
        'remove ipv6.disable=1 from the kernel command line, or use a GuestNetwork with an IPv4 subnet only',
    );
  }

  async #ensureForwarding(): Promise<void> {
    const { bridge, silentBridge, subnets } = this.plan;
    const own = [bridge, silentBridge];
    const routes = await readRoutes(this.#run);
    // In this order: another agent that has written a setting has guarded the interface before.
    const found = await readSettings(this.#run, FORWARDING_SETTINGS);
    const before = joinGuards(await readGuardMemory(this.#dir), await this.#readGuard());
    const { guard, settings } = decideForwarding({
      settings: found,
      bridge,
      families: subnets.map(({ address }) => address.family),
      outside4: devicesOutside(routes, 4, own),
      outside6: devicesOutside(routes, 6, own),
      remembered: before,
    });
    const foreign = (await listBridges(this.#run)).filter((name) => !own.includes(name));
    const rules: RuleSet = { family: 'inet', table: GUARD_TABLE, text: buildGuardRules() };
    await loadRules(this.#run, [rules], buildGuardElements({ guard, before }, [bridge], foreign));
    await writeGuardMemory(this.#dir, guard);
    await writeSettings(this.#run, settings);
  }

  async #readGuard(): Promise<ForwardingGuard> {
    const read = async (set: string) =>
      (await readElements(this.#run, 'inet', GUARD_TABLE, set)).map(([name = '']) => name);
    return {
      interfaces4: await read('interfaces4'),
      interfaces6: await read('interfaces6'),
      isEverywhere6: (await read('everywhere6')).length > 0,
    };
  }

  /** Removes the guard and switches forwarding off again, unless another plane needs it. */
  async #removeGuard(): Promise<void> {
    const present = await listBridges(this.#run);
    const bridges = (await readElements(this.#run, 'inet', GUARD_TABLE, 'bridges')).map(([name = '']) => name);
    if (bridges.length === 0) return;
    if (bridges.some((name) => name !== this.plan.bridge && present.includes(name))) {
      await this.#run('nft', ['-f', '-'], buildDeletion('inet', GUARD_TABLE, 'bridges', [quote(this.plan.bridge)]));
      return;
    }
    const guard = await this.#readGuard();
    const off = [
      ...guard.interfaces4.map((name) => `ipv4/conf/${name}/forwarding`),
      ...guard.interfaces6.map((name) => `ipv6/conf/${name}/force_forwarding`),
      ...(guard.isEverywhere6 ? ['ipv6/conf/all/forwarding'] : []),
    ];
    const existing = await readSettings(this.#run, off);
    await writeSettings(
      this.#run,
      off.filter((path) => existing.has(path)).map((path) => [path, '0'] as const),
    );
    await deleteTable(this.#run, { family: 'inet', table: GUARD_TABLE });
  }
}

/** Throws if nft would read something else than one interface with its addresses. */
function checkPort({ hostInterface, macAddress }: GuestBridgePort, { portPrefix }: NetworkPlan): void {
  const isName = hostInterface.startsWith(portPrefix) && hostInterface.length <= INTERFACE_CHARACTERS;
  if (!isName || !/^[\w.-]+$/.test(hostInterface)) {
    throw new Error(
      `Cannot allow the port ${JSON.stringify(hostInterface)}: expected ${portPrefix} and at most ` +
        `${INTERFACE_CHARACTERS - portPrefix.length} letters or digits`,
    );
  }
  if (!MAC_ADDRESS.test(macAddress)) {
    throw new Error(
      `Cannot allow the port ${hostInterface}: ${JSON.stringify(macAddress)} is not a MAC address such as 02:00:00:00:00:01`,
    );
  }
}
