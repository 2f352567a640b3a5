/** `selfsame node`: runs one node agent on this machine, from its directory. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NODE_TAINT } from '#api/names.ts';
import { createHttpTransport } from '#client/http.ts';
import type { PluginHost } from '#client/credentials/plugin-process.ts';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import type { Clock } from '#lib/clock.ts';
import { replaceClientCertificate } from '#lib/files/kubeconfig-file.ts';
import type { Log } from '#lib/log.ts';
import { writePrivateFile } from '#lib/files/private-file.ts';
import { isWildcard } from '#lib/wildcard-address.ts';
import { startNodeAgent } from '#node/agent/node-agent.ts';
import { startHostSocket } from '#node/host-api/host-socket.ts';
import { copyImages, realImages } from '#node/hypervisor/fake/copy-images.ts';
import { createFakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { createQemuHypervisor } from '#node/hypervisor/qemu/qemu-hypervisor.ts';
import { connectGuests } from '#node/network/connect-guests.ts';
import { guestUserOf } from '#node/hardware/guest-user.ts';
import { readHostCniConfig } from '#node/network/linux/cni/host-cni-config.ts';
import { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import { LinuxPodNetworks } from '#node/network/linux/linux-pod-networks.ts';
import { createFakeNetworks } from '#node/network/fake/fake-networks.ts';
import { planNetwork } from '#node/network/linux/network-plan.ts';
import { nativeProgram } from '#node/pods/native-program.ts';
import { nftRuleSets } from '#node/services/nft.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import { createVolumes } from '#node/volumes/local/volumes.ts';
import { obtainAgentIdentity, type AgentIdentity, type TlsIdentity } from '#plane/node/agent-identity.ts';
import { keepNodeCertificate, type NodeClientCertificate } from '#plane/node/node-certificate.ts';
import { placeGuestFiles } from '#plane/node/guest-files.ts';
import { createLateAgent } from '#plane/node/late-agent.ts';
import { NETWORKS_DIR } from '#plane/node/remove-networks.ts';
import { NodeAccess } from '#plane/node/node-access.ts';
import { createPeers, type OpenPeers } from '#plane/node/peers.ts';
import { ensureNodeDirs, readEndpointCertificate } from '#plane/node/node-dir.ts';

interface NodeProgramOptions {
  readonly name: string;
  /** Absolute path. */
  readonly nodeDir: string;
  readonly sharedDir: string;
  readonly hypervisor: 'qemu' | 'fake';
  readonly accel: 'auto' | 'kvm' | 'tcg';
  /** Directory with the files of the built-in guest, if it was built. */
  readonly guestDir: string;
  /** True if guests can run as another user. */
  readonly isRoot: boolean;
  /** Command of this program, for Jobs. */
  readonly program: readonly [string, ...string[]];
  /** Set on an existing cluster; otherwise the directory of the node has everything. */
  readonly cluster?: ClusterNodeOptions | undefined;
  /** Runs exec plugins of the kubeconfig. */
  readonly plugins?: PluginHost | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts the start, which waits for the API without a limit. */
  readonly signal?: AbortSignal;
}

interface ClusterNodeOptions {
  readonly kubeconfig: string;
  /** Address to listen on: an IP address of this machine or the wildcard address, and a port (0 selects a free one). */
  readonly address: string;
  readonly port: number;
  /** IP address under which other components reach the agent. */
  readonly nodeIp: string;
  /** Host name under which they also reach it. */
  readonly hostname?: string | undefined;
}

interface NodeProgram {
  /** Stops the agent; guests keep running. */
  stop(): Promise<void>;
}

const LOCALHOST = '127.0.0.1';

/** Rejects if it cannot start or is aborted, after cleaning up. */
export async function startNodeProgram(options: NodeProgramOptions): Promise<NodeProgram> {
  const { name, nodeDir, sharedDir, guestDir, isRoot, clock, log } = options;
  await ensureNodeDirs(nodeDir, sharedDir);
  const { cluster, plugins } = options;
  const access = new NodeAccess({ file: cluster?.kubeconfig ?? join(nodeDir, 'kubeconfig'), plugins, clock, log });
  const { server, certificateAuthority } = access.now();
  const transport = createHttpTransport(access.now(), { userAgent: `selfsame-node/${name}`, clock });
  access.onRenewed((renewed) => transport.renew(renewed));
  const sandboxed = isRoot && options.hypervisor === 'qemu';
  const { hypervisor, networks } = createGuestParts(options, sandboxed);
  const cleanups: (() => Promise<void> | void)[] = [() => transport.close(), () => hypervisor.close()];
  const stop = async () => {
    for (let end = cleanups.pop(); end !== undefined; end = cleanups.pop()) await end();
  };
  try {
    const lateAgent = createLateAgent();
    const client = createClient(transport);
    const { address, port, nodeIp } = cluster ?? { address: LOCALHOST, port: 0, nodeIp: LOCALHOST };
    cleanups.push(keepAccess(options, access, client));
    const identity = await obtainIdentity(options, { access, client, nodeDir });
    cleanups.push(() => identity.stop());
    const endpoint = await startNodeEndpoint({
      ...{ host: address, port, agent: lateAgent.agent, clock, log },
      ...identity.now(),
      logReaderCa: cluster && certificateAuthority,
    });
    identity.onRenewed((renewed) => endpoint.renew(renewed));
    cleanups.push(() => endpoint.stop());
    const socket = await startHostSocket({ dir: nodeDir, agent: lateAgent.agent, log });
    cleanups.push(() => socket.stop());
    const peers = createOwnPeers(identity, client, clock);
    if (peers !== undefined) cleanups.push(() => peers.close());
    const agent = await startNodeAgent({
      name,
      client,
      hypervisor,
      volumes: await createVolumes({ nodeName: name, nodeDir, sharedDir, sandboxed, log }),
      networks,
      guest: await placeGuestFiles(guestDir, nodeDir),
      endpoint: { address: nodeIp, port: endpoint.port, hostname: cluster === undefined ? name : cluster.hostname },
      taints: cluster === undefined ? [] : [NODE_TAINT],
      sandboxed,
      hostDir: nodeDir,
      runProgram: nativeProgram({ command: options.program, cwd: nodeDir }),
      // Clusters route Services themselves, with kube-proxy or what they use instead.
      ...(sandboxed && cluster === undefined && { services: serviceTools }),
      programAccess: { dir: join(nodeDir, 'pods'), server, certificateAuthority },
      clock,
      log,
      ...(peers && { peers }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    lateAgent.attach(agent);
    cleanups.push(() => agent.stop());
    // Ready only after other components can reach the agent.
    await agent.registered;
    return { stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const serviceTools = {
  rules: nftRuleSets(),
  hostsDir: (key: string) => join(NETWORKS_DIR, key, 'hosts'),
  planNetwork,
};

/**
 * Keeps the access to the API current: reloads the kubeconfig and, on a cluster, renews it. Returns a stop function.
 */
function keepAccess({ name, cluster, clock, log }: NodeProgramOptions, access: NodeAccess, client: Client) {
  const stopping = new AbortController();
  const install = async (file: string, certificate: NodeClientCertificate) => {
    const text = replaceClientCertificate(await readFile(file, 'utf8'), certificate);
    if (text === undefined)
      throw new Error(`Cannot renew the certificate: it is not in ${file}; renew it where it is stored`);
    await writePrivateFile(file, text);
    access.reload();
  };
  const running = [access.run(stopping)];
  if (cluster !== undefined) {
    const current = () => access.now().clientCertificate;
    const { kubeconfig } = cluster;
    running.push(
      keepNodeCertificate(
        { client, name, current, install: (certificate) => install(kubeconfig, certificate), clock, log },
        stopping,
      ),
    );
  }
  return async () => {
    stopping.abort();
    await Promise.all(running);
  };
}

/**
 * Returns the identity of this agent: from its directory, or on a cluster a certificate that is requested and renewed.
 */
async function obtainIdentity(
  { name, cluster, clock, log, signal }: NodeProgramOptions,
  { access, client, nodeDir }: { readonly access: NodeAccess; readonly client: Client; readonly nodeDir: string },
): Promise<AgentIdentity> {
  if (cluster === undefined) return await readIdentity(access, nodeDir, log);
  const { address, nodeIp } = cluster;
  // The wildcard address is not a valid host in a certificate.
  const hosts = [...new Set([nodeIp, ...(isWildcard(address) ? [] : [address]), name])];
  return await obtainAgentIdentity({ client, name, hosts, clock, log, ...(signal === undefined ? {} : { signal }) });
}

/** Reads the identity again after the kubeconfig changed, which the server writes last. */
async function readIdentity(access: NodeAccess, nodeDir: string, log: Log): Promise<AgentIdentity> {
  let endpoint = await readEndpointCertificate(nodeDir);
  const listeners = new Set<(renewed: TlsIdentity) => void>();
  const reread = async () => {
    endpoint = await readEndpointCertificate(nodeDir);
    for (const listener of listeners) listener(endpoint);
  };
  access.onRenewed(() => {
    reread().catch((err: unknown) =>
      log.warn({ err }, 'Cannot read the certificate of this agent; using the previous one'),
    );
  });
  return {
    now: () => endpoint,
    peer() {
      const { clientCertificate: cert, clientKey: key, certificateAuthority: ca } = access.now();
      return cert === undefined || key === undefined || ca === undefined ? undefined : { cert, key, ca };
    },
    onRenewed: (listener) => void listeners.add(listener),
    stop() {},
  };
}

/** Nodes authenticate to each other with their API client certificates, and on a cluster with ours. */
function createOwnPeers(identity: AgentIdentity, client: Client, clock: Clock): OpenPeers | undefined {
  const first = identity.peer();
  if (first === undefined) return undefined;
  return createPeers({ client, ...first, currentIdentity: () => identity.peer() ?? first, clock });
}

/** Returns the hypervisor and the networks of its guests. Without sandboxes, guests are in the host's namespace. */
function createGuestParts(options: NodeProgramOptions, sandboxed: boolean) {
  const { nodeDir, accel, cluster, clock, log } = options;
  if (options.hypervisor === 'fake') {
    const simulated = { clock, dir: join(nodeDir, 'simulated'), copyImages, images: realImages };
    const podNetworks = createFakeNetworks({ dir: join(nodeDir, 'simulated-networks') });
    const connect = { networks: podNetworks, userOf: () => undefined, log };
    const hypervisor: Hypervisor = connectGuests(createFakeHypervisor(simulated), connect);
    return { hypervisor, networks: { podNetworks, hostConfig: async () => undefined, isSimulated: true } };
  }
  const qemu = createQemuHypervisor({ dir: join(nodeDir, 'domains'), accel, sandboxed, clock, log });
  if (!sandboxed) return { hypervisor: qemu, networks: undefined };
  const podNetworks = new LinuxPodNetworks({
    nodeDir,
    clock,
    log,
    hostSide: (plan) => new LinuxHostSide({ plan, dir: join(NETWORKS_DIR, plan.key) }),
  });
  const hypervisor = connectGuests(qemu, { networks: podNetworks, userOf: guestUserOf, log });
  const hostConfig = async () => {
    const config = cluster === undefined ? undefined : await readHostCniConfig();
    return config && JSON.stringify(config);
  };
  return { hypervisor, networks: { podNetworks, hostConfig } };
}
