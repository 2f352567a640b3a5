/** `selfsame node`: one node agent on this machine, from its directory. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NODE_TAINT } from '#api/names.ts';
import { createHttpTransport } from '#client/http.ts';
import type { Client } from '#client/client.ts';
import { loadKubeconfig, type ClusterAccess } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { startNodeAgent } from '#node/agent/node-agent.ts';
import { startHostSocket } from '#node/host-api/host-socket.ts';
import { copyImages, realImages } from '#node/hypervisor/fake/copy-images.ts';
import { createFakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { createQemuHypervisor } from '#node/hypervisor/qemu/qemu-hypervisor.ts';
import { nativeProgram } from '#node/pods/native-program.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import { createVolumes } from '#node/volumes/volumes.ts';
import { askForIdentity, type AgentIdentity } from '#plane/cluster/agent-identity.ts';
import { placeGuestFiles } from '#plane/guest-files.ts';
import { lateAgent } from '#plane/late-agent.ts';
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
  /** Where others reach this agent: an IP address of this machine, and a port (0 takes a free one). */
  readonly address: string;
  readonly port: number;
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
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const { cluster } = options;
  const kubeconfig = cluster?.kubeconfig ?? join(nodeDir, 'kubeconfig');
  const access = loadKubeconfig(readFile(kubeconfig), { directory: dirname(kubeconfig), readFile });
  const transport = createHttpTransport(access, { userAgent: `selfsame-node/${name}`, clock });
  const guestUser = isRoot && options.hypervisor === 'qemu' ? GUEST_USER : undefined;
  const hypervisor = createHypervisor(options, guestUser);
  const ends: (() => Promise<void> | void)[] = [() => transport.close(), () => hypervisor.close()];
  const stop = async () => {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) await end();
  };
  try {
    const late = lateAgent();
    const client = createClient(transport);
    const { address, port } = cluster ?? { address: LOCALHOST, port: 0 };
    const own = await identityOf(options, { access, client, nodeDir });
    ends.push(() => own.stop());
    const endpoint = await startNodeEndpoint({
      ...{ host: address, port, agent: late.agent, clock, log },
      ...own.now(),
      logReaderCa: cluster && access.certificateAuthority,
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
      endpoint: { address, port: endpoint.port },
      taints: cluster === undefined ? [] : [NODE_TAINT],
      guestUser,
      hostDir: nodeDir,
      runProgram: nativeProgram({ command: options.program, cwd: nodeDir }),
      programAccess: {
        dir: join(nodeDir, 'pods'),
        server: access.server,
        certificateAuthority: access.certificateAuthority,
      },
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

/** Who this agent is to our other parts: as the directory says, or with a certificate that is asked for and renewed. */
async function identityOf(
  { name, cluster, clock, log, signal }: NodeProgramOptions,
  { access, client, nodeDir }: { readonly access: ClusterAccess; readonly client: Client; readonly nodeDir: string },
): Promise<AgentIdentity> {
  if (cluster !== undefined) {
    const hosts = [cluster.address, name];
    return await askForIdentity({ client, name, hosts, clock, log, ...(signal === undefined ? {} : { signal }) });
  }
  const endpoint = await readEndpointCertificate(nodeDir);
  const { clientCertificate: cert, clientKey: key, certificateAuthority: ca } = access;
  const peer = cert === undefined || key === undefined || ca === undefined ? undefined : { cert, key, ca };
  return { now: () => endpoint, peer: () => peer, onRenewed() {}, stop() {} };
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
