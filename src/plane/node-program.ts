/** `selfsame node`: one node agent on this machine, from its directory. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NODE_TAINT } from '#api/names.ts';
import { createHttpTransport } from '#client/http.ts';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import type { Clock } from '#lib/clock.ts';
import { withClientCertificate } from '#lib/kubeconfig-file.ts';
import type { Log } from '#lib/log.ts';
import { writePrivateFile } from '#lib/private-file.ts';
import { isWildcard } from '#lib/wildcard-address.ts';
import { startNodeAgent } from '#node/agent/node-agent.ts';
import { startHostSocket } from '#node/host-api/host-socket.ts';
import { copyImages, realImages } from '#node/hypervisor/fake/copy-images.ts';
import { createFakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { createQemuHypervisor } from '#node/hypervisor/qemu/qemu-hypervisor.ts';
import { nativeProgram } from '#node/pods/native-program.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import { createVolumes } from '#node/volumes/volumes.ts';
import { askForIdentity, type AgentIdentity, type Identity } from '#plane/cluster/agent-identity.ts';
import { keepNodeCertificate, type NodeProof } from '#plane/cluster/node-certificate.ts';
import { placeGuestFiles } from '#plane/guest-files.ts';
import { lateAgent } from '#plane/late-agent.ts';
import { NodeAccess } from '#plane/node-access.ts';
import { createPeers, type OpenPeers } from '#plane/peers.ts';
import { ensureNodeDirs, readEndpointCertificate } from '#plane/node-dir.ts';

export interface NodeProgramOptions {
  readonly name: string;
  /** Absolute. */
  readonly nodeDir: string;
  readonly sharedDir: string;
  readonly hypervisor: 'qemu' | 'fake';
  readonly accel: 'auto' | 'kvm' | 'tcg';
  /** Where the files of the built-in guest are, when they were built. */
  readonly guestDir: string;
  /** Whether we may run guests as somebody else. */
  readonly isRoot: boolean;
  /** How this program is started again, for Jobs. */
  readonly program: readonly [string, ...string[]];
  /** On a cluster of others; without it, the directory of the node has all that it needs. */
  readonly cluster?: NodeOfCluster | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Gives up a start, which waits for the API for as long as that takes. */
  readonly signal?: AbortSignal;
}

export interface NodeOfCluster {
  readonly kubeconfig: string;
  /** Where the agent listens: an IP address of this machine or of all of its interfaces, and a port (0 takes a free one). */
  readonly address: string;
  readonly port: number;
  /** The IP address under which others reach it. */
  readonly nodeIp: string;
  /** A name under which they do, too. */
  readonly hostname?: string | undefined;
}

export interface NodeProgram {
  /** Guests go on running. */
  stop(): Promise<void>;
}

const LOCALHOST = '127.0.0.1';
/** The id that Debian keeps for unprivileged guests (libvirt-qemu); no account of that name is needed. */
const GUEST_USER = { uid: 64_055, gid: 64_055 };

/** Rejects where it cannot start or is told to give up; nothing of it is left then. */
export async function startNodeProgram(options: NodeProgramOptions): Promise<NodeProgram> {
  const { name, nodeDir, sharedDir, guestDir, isRoot, clock, log } = options;
  await ensureNodeDirs(nodeDir, sharedDir);
  const { cluster } = options;
  const access = new NodeAccess({ file: cluster?.kubeconfig ?? join(nodeDir, 'kubeconfig'), clock, log });
  const { server, certificateAuthority } = access.now();
  const transport = createHttpTransport(access.now(), { userAgent: `selfsame-node/${name}`, clock });
  access.onRenewed((renewed) => transport.renew(renewed));
  const guestUser = isRoot && options.hypervisor === 'qemu' ? GUEST_USER : undefined;
  const hypervisor = createHypervisor(options, guestUser);
  const ends: (() => Promise<void> | void)[] = [() => transport.close(), () => hypervisor.close()];
  const stop = async () => {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) await end();
  };
  try {
    const late = lateAgent();
    const client = createClient(transport);
    const { address, port, nodeIp } = cluster ?? { address: LOCALHOST, port: 0, nodeIp: LOCALHOST };
    ends.push(keepAccess(options, access, client));
    const own = await identityOf(options, { access, client, nodeDir });
    ends.push(() => own.stop());
    const endpoint = await startNodeEndpoint({
      ...{ host: address, port, agent: late.agent, clock, log },
      ...own.now(),
      logReaderCa: cluster && certificateAuthority,
    });
    own.onRenewed((identity) => endpoint.renew(identity));
    ends.push(() => endpoint.stop());
    const socket = await startHostSocket({ dir: nodeDir, agent: late.agent, log });
    ends.push(() => socket.stop());
    const peers = peersOf(own, client, clock);
    if (peers !== undefined) ends.push(() => peers.close());
    const agent = await startNodeAgent({
      name,
      client,
      hypervisor,
      volumes: await createVolumes({ nodeName: name, nodeDir, sharedDir, guestUser, log }),
      guest: await placeGuestFiles(guestDir, nodeDir),
      endpoint: { address: nodeIp, port: endpoint.port, hostname: cluster === undefined ? name : cluster.hostname },
      taints: cluster === undefined ? [] : [NODE_TAINT],
      guestUser,
      hostDir: nodeDir,
      runProgram: nativeProgram({ command: options.program, cwd: nodeDir }),
      programAccess: { dir: join(nodeDir, 'pods'), server, certificateAuthority },
      clock,
      log,
      ...(peers && { peers }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    late.is(agent);
    ends.push(() => agent.stop());
    // Whoever is told that we are ready reaches us.
    await agent.registered;
    return { stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** By which the node comes to the API: read again, and on a cluster renewed. The result ends it. */
function keepAccess({ name, cluster, clock, log }: NodeProgramOptions, access: NodeAccess, client: Client) {
  const stopping = new AbortController();
  const use = async (file: string, proof: NodeProof) => {
    const text = withClientCertificate(await readFile(file, 'utf8'), proof);
    if (text === undefined) throw new Error(`the certificate is not in ${file}; whoever made that must renew it`);
    await writePrivateFile(file, text);
    access.look();
  };
  const running = [access.run(stopping)];
  if (cluster !== undefined) {
    const current = () => access.now().clientCertificate;
    const { kubeconfig } = cluster;
    running.push(
      keepNodeCertificate({ client, name, current, use: (proof) => use(kubeconfig, proof), clock, log }, stopping),
    );
  }
  return async () => {
    stopping.abort();
    await Promise.all(running);
  };
}

/** Who this agent is to our other parts: as the directory says, or with a certificate that is asked for and renewed. */
async function identityOf(
  { name, cluster, clock, log, signal }: NodeProgramOptions,
  { access, client, nodeDir }: { readonly access: NodeAccess; readonly client: Client; readonly nodeDir: string },
): Promise<AgentIdentity> {
  if (cluster === undefined) return await identityInDirectory(access, nodeDir, log);
  const { address, nodeIp } = cluster;
  // Of all interfaces is no address that somebody could ask for.
  const hosts = [...new Set([nodeIp, ...(isWildcard(address) ? [] : [address]), name])];
  return await askForIdentity({ client, name, hosts, clock, log, ...(signal === undefined ? {} : { signal }) });
}

/** The server that keeps the directory writes the kubeconfig last. */
async function identityInDirectory(access: NodeAccess, nodeDir: string, log: Log): Promise<AgentIdentity> {
  let endpoint = await readEndpointCertificate(nodeDir);
  const listeners = new Set<(renewed: Identity) => void>();
  const again = async () => {
    endpoint = await readEndpointCertificate(nodeDir);
    for (const listener of listeners) listener(endpoint);
  };
  access.onRenewed(() => {
    again().catch((err: unknown) => log.warn({ err }, 'Cannot read the certificate of this agent; going on as before'));
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

/** Nodes know each other by the certificates with which they come to the API, too; on a cluster by ours. */
function peersOf(own: AgentIdentity, client: Client, clock: Clock): OpenPeers | undefined {
  const first = own.peer();
  if (first === undefined) return undefined;
  return createPeers({ client, ...first, renewed: () => own.peer() ?? first, clock });
}

function createHypervisor(options: NodeProgramOptions, guestUser: typeof GUEST_USER | undefined): Hypervisor {
  const { nodeDir, accel, clock, log } = options;
  if (options.hypervisor === 'fake')
    return createFakeHypervisor({ clock, dir: join(nodeDir, 'simulated'), copyImages, images: realImages });
  return createQemuHypervisor({ dir: join(nodeDir, 'domains'), accel, guestUser, clock, log });
}
