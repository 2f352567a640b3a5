/**
 * Connects single interfaces: makes the tap, loads the rules, runs the plugins, and moves the port between the two bridges.
 * Keeps no state: the records of linux-pod-networks.ts have it.
 */
import { createHash } from 'node:crypto';
import { hostBridgesIn } from '#api/network/definition-config.ts';
import { findBridgeProblem } from '#node/network/linux/bindings/existing-bridges.ts';
import {
  claimMacScript,
  hasOwnMacOnly,
  idleMacOf,
  releaseMacScript,
  type LinkDetails,
} from '#node/network/linux/bindings/own-mac-port.ts';
import type { CniConfigList } from '#node/network/linux/cni/cni-config.ts';
import { parseCniConfig } from '#node/network/linux/cni/cni-config.ts';
import type { CniResult } from '#node/network/linux/cni/cni-result.ts';
import type { CniRunner } from '#node/network/linux/cni/cni-runner.ts';
import {
  defaultNetworkCapabilities,
  defaultNetworkConfig,
  defaultNetworkFacts,
} from '#node/network/linux/default-network.ts';
import type { HostSide } from '#node/network/linux/host-port.ts';
import { planInterface, type InterfacePlan, type InterfaceFacts } from '#node/network/linux/interface-plan.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';
import type { PodNamespaces } from '#node/network/linux/pod-namespace.ts';
import { loadFacts, storeFacts, type ConnectedInterface, type PodRecord } from '#node/network/linux/pod-record.ts';
import {
  announceScript,
  bridgeCommands,
  namespaceSysctls,
  podScript,
  removeCommands,
  serveCommands,
  tapCommands,
} from '#node/network/linux/pod-script.ts';
import { bridgeRules } from '#node/network/linux/rules/bridge-rules.ts';
import { masqueradeRules } from '#node/network/linux/rules/masquerade-rules.ts';
import { removeTable, ruleTableOf } from '#node/network/linux/rules/rule-text.ts';
import { silentRules, withoutSilentRules } from '#node/network/linux/rules/silent-rules.ts';
import { runNetworkProgram } from '#node/network/linux/run-network-program.ts';
import { PodNetworkError, type NetworkRequest, type TapRequest } from '#node/network/pod-networks.ts';

export type ConnectorStep = 'prepared' | 'added' | 'allowed' | 'bound' | 'moved';

interface ConnectorOptions {
  readonly cni: CniRunner;
  readonly namespaces: PodNamespaces;
  /** Words that run a program in the namespace of the host. */
  readonly launcher: readonly string[];
  /** Throws if there is no default network. */
  readonly host: () => HostSide;
  /** Undefined if there is no default network. */
  readonly knownHost: () => HostSide | undefined;
  readonly afterStep: (step: ConnectorStep) => void | Promise<void>;
}

interface ConnectOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called when the side of the guest has its addresses, so that DHCP can be started while the plugins run. */
  readonly onReady?: (plan: InterfacePlan) => void;
}

/** Characters of the name of a port that are left after the prefix. */
const PORT_CHARACTERS = 6;
/** An MTU for the tap until the one of the network is known. */
const SMALLEST_MTU = 1280;

export class InterfaceConnector {
  readonly #cni: CniRunner;
  readonly #namespaces: PodNamespaces;
  readonly #launcher: readonly string[];
  readonly #host: () => HostSide;
  readonly #knownHost: () => HostSide | undefined;
  readonly #afterStep: (step: ConnectorStep) => void | Promise<void>;

  constructor({ cni, namespaces, launcher, host, knownHost, afterStep }: ConnectorOptions) {
    this.#cni = cni;
    this.#namespaces = namespaces;
    this.#launcher = launcher;
    this.#host = host;
    this.#knownHost = knownHost;
    this.#afterStep = afterStep;
  }

  /** Connects an interface, silently. Leaves what it has made if it fails. */
  connect(request: NetworkRequest, tap: TapRequest, options: ConnectOptions = {}): Promise<ConnectedInterface> {
    const { network } = tap.attachment;
    return network.type === 'default'
      ? this.#connectDefault(request, tap, options)
      : this.#connectForeign(request, tap, network.config, options);
  }

  planOf(tap: TapRequest, { facts }: ConnectedInterface): InterfacePlan {
    return planInterface(tap, loadFacts(facts));
  }

  async #connectDefault(
    request: NetworkRequest,
    tap: TapRequest,
    { signal, onReady }: ConnectOptions,
  ): Promise<ConnectedInterface> {
    const { id, user } = request;
    const host = this.#host();
    const facts = defaultNetworkFacts(host.plan, tap);
    const plan = planInterface(tap, facts);
    const script = podScript({
      sysctls: namespaceSysctls({
        hasV6: facts.addresses.some(({ address }) => address.family === 6),
        forwards: forwards(request),
      }),
      ip: [...tapCommands(plan, user), ...serveCommands(plan)],
      nft: rulesOf(plan),
    });
    await this.#namespaces.run(id, script, signal);
    onReady?.(plan);
    await this.#afterStep('prepared');
    const capabilities = defaultNetworkCapabilities(tap, facts);
    const result = await this.#add(request, tap, defaultNetworkConfig(host.plan, tap, facts), capabilities, signal);
    await this.#afterStep('added');
    const hostInterface = await this.#renamePort(
      id,
      plan.podInterface,
      hostInterfaceOf(result, host.plan.silentBridge),
    );
    const connected = { podInterface: plan.podInterface, hostInterface, facts: storeFacts(facts) };
    await this.allow(tap, connected);
    await this.#afterStep('allowed');
    if (plan.binding === 'bridge') await this.#bridge(id, plan, signal);
    return connected;
  }

  /** A network of plugins that are not ours: its addresses are known afterwards, and until then it is silent. */
  async #connectForeign(
    request: NetworkRequest,
    tap: TapRequest,
    text: string,
    { signal, onReady }: ConnectOptions,
  ): Promise<ConnectedInterface> {
    const { id, user } = request;
    const { podInterface, binding, addresses } = tap.attachment;
    const config = parseCniConfig(text, `of interface "${podInterface}"`);
    const unknown = { addresses: [], gateways: [], nameservers: [], mtu: SMALLEST_MTU };
    const early = planInterface({ ...tap, attachment: { ...tap.attachment, binding: 'bridge' } }, unknown);
    await this.#checkBridges(text, podInterface);
    const prepare = podScript({
      sysctls: namespaceSysctls({ hasV6: true, forwards: forwards(request) }),
      ip: tapCommands({ ...early, binding }, user),
      nft: silentRules(podInterface),
    });
    await this.#namespaces.run(id, prepare, signal);
    await this.#afterStep('prepared');
    const capabilities = {
      // A macvlan gets the address of the guest when it is activated.
      ...(binding === 'bridge' && !config.plugins.some(isMacvlan) && { mac: tap.macAddress }),
      ...(addresses && { ips: addresses }),
    };
    const result = await this.#add(request, tap, config, capabilities, signal);
    await this.#afterStep('added');
    const link = await this.#linkOf(id, podInterface);
    const hasOwnMac = binding === 'bridge' && hasOwnMacOnly(link);
    const facts = resultFacts(result, podInterface, link.mtu);
    const plan = planInterface(tap, facts);
    const devices = binding === 'bridge' ? [plan.tap, plan.podBridge] : [plan.tap];
    const ip = [...devices.map((device) => `link set dev ${device} mtu ${plan.mtu}`), ...serveCommands(plan)];
    await this.#namespaces.run(id, podScript({ ip, nft: rulesOf(plan) }), signal);
    const podMac = hasOwnMac ? this.#idleMac(id, podInterface) : plan.podMac;
    if (binding === 'bridge') await this.#bridge(id, { ...plan, podMac }, signal);
    else await this.#afterStep('bound');
    onReady?.(plan);
    return { podInterface, ...(hasOwnMac && { hasOwnMac }), facts: storeFacts(facts) };
  }

  /** Permits the addresses of an interface of the default network on its port. */
  async allow(tap: TapRequest, connection: ConnectedInterface): Promise<void> {
    const { hostInterface } = connection;
    if (hostInterface === undefined) return;
    const { binding, guestMac, podMac, addresses } = this.planOf(tap, connection);
    const macAddress = binding === 'bridge' ? guestMac : podMac;
    const host = this.#knownHost() ?? this.#host();
    await host.allow({ hostInterface, macAddress, addresses: addresses.map(({ pod }) => pod) });
  }

  /** Removes the permission of `allow`, also if no record says that it was given. */
  async forget(id: string, { attachment: { network, podInterface } }: TapRequest): Promise<void> {
    const host = this.#knownHost();
    if (network.type === 'default') await host?.forget(this.#portName(id, podInterface, host.plan));
  }

  /**
   * Connects a silent interface with its network, and announces its addresses. `isNew`: the guest has not been started yet.
   * With the bridge binding it announces itself then.
   */
  async activate(
    id: string,
    tap: TapRequest,
    connection: ConnectedInterface,
    { isNew = false }: { readonly isNew?: boolean } = {},
  ): Promise<void> {
    const plan = this.planOf(tap, connection);
    const { hostInterface, podInterface } = connection;
    const announce = isNew && plan.binding === 'bridge' ? '' : announceScript(plan);
    if (hostInterface === undefined) {
      const claim = connection.hasOwnMac === true ? claimMacScript(plan) : '';
      await this.#namespaces.run(id, `${podScript({ nft: withoutSilentRules(podInterface) })}${claim}${announce}`);
      return;
    }
    const host = this.#knownHost();
    // The port is moved as soon as the default network is known (misplacedPorts).
    if (host === undefined) return;
    await this.#move(hostInterface, host.plan.bridge);
    await this.#afterStep('moved');
    if (announce !== '') await this.#namespaces.run(id, announce);
  }

  /** Works without a default network, too: a port without a bridge is silent. */
  async silence(id: string, { hostInterface, podInterface, hasOwnMac }: ConnectedInterface): Promise<void> {
    const release = hasOwnMac === true ? releaseMacScript(podInterface, this.#idleMac(id, podInterface)) : '';
    const script = `${podScript({ nft: silentRules(podInterface) })}${release}`;
    if (hostInterface === undefined) await this.#namespaces.run(id, script);
    else await this.#move(hostInterface, this.#knownHost()?.plan.silentBridge);
  }

  /** Removes one interface, whether complete or not; the namespace and its other interfaces stay. */
  async disconnect(id: string, tap: TapRequest): Promise<void> {
    const { podInterface, binding } = tap.attachment;
    await this.#cni.delete(id, podInterface);
    await this.forget(id, tap);
    const facts = { addresses: [], gateways: [], nameservers: [], mtu: SMALLEST_MTU };
    const plan = planInterface({ ...tap, attachment: { ...tap.attachment, binding: 'bridge' } }, facts);
    const table = ruleTableOf(podInterface);
    const nft = [...removeTable('inet', table), ...removeTable('bridge', table), withoutSilentRules(podInterface)].join(
      '\n',
    );
    // A device may be missing after a kill -9.
    const remove = removeCommands({ ...plan, binding }).map((command) => `ip ${command} 2>/dev/null || true`);
    await this.#namespaces.run(id, [podScript({ nft }), ...remove, ''].join('\n'));
  }

  /** Returns the ids of guests that have a port in another bridge than their record demands. */
  async misplacedPorts({ bridge, silentBridge }: NetworkPlan, records: readonly PodRecord[]): Promise<string[]> {
    if (records.length === 0) return [];
    const links = JSON.parse(await this.#runIp(['-json', 'link', 'show'])) as {
      ifname: string;
      master?: string;
    }[];
    const masters = new Map(links.map(({ ifname, master }) => [ifname, master]));
    return records
      .filter(({ isSilent, interfaces }) =>
        interfaces.some(
          ({ hostInterface = '' }) =>
            masters.has(hostInterface) && masters.get(hostInterface) !== (isSilent ? silentBridge : bridge),
        ),
      )
      .map(({ request }) => request.id);
  }

  /**
   * Gives the host's end of a pair the name by which rules know it. It is down in between, because older kernels demand it.
   * The bridge, which drops everything because it is down, was set up by the plugin.
   */
  async #renamePort(id: string, podInterface: string, found: string): Promise<string> {
    const { plan } = this.#host();
    const name = this.#portName(id, podInterface, plan);
    const commands = [
      `link set dev ${plan.silentBridge} down`,
      `link set dev ${found} down`,
      `link set dev ${found} name ${name} up`,
    ];
    await this.#runIp(['-batch', '-'], { input: `${commands.join('\n')}\n` });
    return name;
  }

  /** The name follows from the guest, so that it is known after a kill -9. */
  #portName(id: string, podInterface: string, { portPrefix }: NetworkPlan): string {
    const hash = createHash('sha256')
      .update(`${this.#namespaces.path(id)} ${podInterface}`)
      .digest()
      .readUInt32BE();
    return portPrefix + hash.toString(36).slice(-PORT_CHARACTERS).padStart(PORT_CHARACTERS, '0');
  }

  /** Moves a port into a bridge, or out of all. */
  async #move(hostInterface: string, bridge: string | undefined): Promise<void> {
    const target = bridge === undefined ? ['nomaster'] : ['master', bridge];
    await this.#runIp(['link', 'set', 'dev', hostInterface, ...target]);
  }

  async #bridge(id: string, plan: InterfacePlan, signal: AbortSignal | undefined): Promise<void> {
    const sysctls = [[`ipv6/conf/${plan.podInterface}/disable_ipv6`, 1] as const];
    await this.#namespaces.run(id, podScript({ sysctls, ip: bridgeCommands(plan) }), signal);
    await this.#afterStep('bound');
  }

  /** Runs ip in the namespace of the host. */
  #runIp(args: readonly string[], options: { input?: string } = {}): Promise<string> {
    const [program, ...before] = [...this.#launcher, 'ip'] as const;
    return runNetworkProgram(program, [...before, ...args], options);
  }

  #add(
    { id, network }: NetworkRequest,
    { attachment }: TapRequest,
    config: CniConfigList,
    capabilities: Readonly<Record<string, unknown>>,
    signal: AbortSignal | undefined,
  ): Promise<CniResult> {
    const { podInterface } = attachment;
    const namespace = this.#namespaces.path(id);
    return this.#cni.add(
      config,
      { containerId: id, namespace, interface: podInterface, pod: network.pod, capabilities },
      { signal },
    );
  }

  #idleMac(id: string, podInterface: string): string {
    return idleMacOf(this.#namespaces.path(id), podInterface);
  }

  async #checkBridges(config: string, podInterface: string): Promise<void> {
    if (hostBridgesIn(config).length === 0) return;
    const links = JSON.parse(await this.#runIp(['-details', '-json', 'link', 'show'])) as LinkDetails[];
    const problem = findBridgeProblem(config, links);
    if (problem !== undefined) throw new PodNetworkError(`Cannot connect interface "${podInterface}": ${problem}`);
  }

  async #linkOf(id: string, device: string): Promise<LinkDetails & { mtu: number }> {
    const output = await this.#namespaces.run(id, `ip -details -json link show dev ${device}\n`);
    const [link] = JSON.parse(output) as (LinkDetails & { mtu: number })[];
    if (link === undefined) throw new PodNetworkError(`The plugins did not create interface "${device}"`);
    return link;
  }
}

function isMacvlan({ type }: { readonly type: string }): boolean {
  return type === 'macvlan';
}

function forwards({ interfaces }: NetworkRequest): boolean {
  return interfaces.some(({ attachment }) => attachment.binding === 'masquerade');
}

function rulesOf(plan: InterfacePlan): string {
  return plan.binding === 'masquerade' ? masqueradeRules(plan) : bridgeRules(plan);
}

function hostInterfaceOf({ interfaces }: CniResult, bridge: string): string {
  const found = interfaces.find(({ name, sandbox }) => sandbox === undefined && name !== bridge);
  if (found === undefined)
    throw new PodNetworkError('CNI plugin "bridge" did not report the host\'s end of its veth pair');
  return found.name;
}

/** The facts about one interface from the result of its plugins. */
function resultFacts(
  { ips, interfaces, defaultGateways, nameservers }: CniResult,
  podInterface: string,
  mtu: number,
): InterfaceFacts {
  const index = interfaces.findIndex(({ name, sandbox }) => name === podInterface && sandbox !== undefined);
  const own = ips.filter((ip) => ip.interface === undefined || ip.interface === index);
  return {
    addresses: own.map(({ address, prefix }) => ({ address, prefix })),
    gateways: defaultGateways,
    nameservers,
    mtu,
  };
}
