/** `selfsame node`: one node agent on this machine, from its directory. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
  readonly clock: Clock;
  readonly log: Log;
  /** Gives up a start, which waits for the API for as long as that takes. */
  readonly signal?: AbortSignal;
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
  const access = loadKubeconfig(readFile(join(nodeDir, 'kubeconfig')), { directory: nodeDir, readFile });
  const transport = createHttpTransport(access, { userAgent: `selfsame-node/${name}`, clock });
  const guestUser = isRoot && options.hypervisor === 'qemu' ? GUEST_USER : undefined;
  const hypervisor = createHypervisor(options, guestUser);
  const ends: (() => Promise<void> | void)[] = [() => transport.close(), () => hypervisor.close()];
  const stop = async () => {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) await end();
  };
  try {
    const late = lateAgent();
    const certificate = await readEndpointCertificate(nodeDir);
    const endpoint = await startNodeEndpoint({
      host: LOCALHOST,
      port: 0,
      ...certificate,
      agent: late.agent,
      clock,
      log,
    });
    ends.push(() => endpoint.stop());
    const socket = await startHostSocket({ dir: nodeDir, agent: late.agent, log });
    ends.push(() => socket.stop());
    const client = createClient(transport);
    const peers = peersOf(access, client, clock);
    if (peers !== undefined) ends.push(() => peers.close());
    const agent = await startNodeAgent({
      name,
      client,
      hypervisor,
      volumes: await createVolumes({ nodeName: name, nodeDir, sharedDir, guestUser, log }),
      guest: await placeGuestFiles(guestDir, nodeDir),
      endpoint: { address: LOCALHOST, port: endpoint.port },
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

/** Nodes know each other by the certificates with which they come to the API, too. */
function peersOf(access: ClusterAccess, client: Client, clock: Clock): OpenPeers | undefined {
  const { clientCertificate: cert, clientKey: key, certificateAuthority: ca } = access;
  if (cert === undefined || key === undefined || ca === undefined) return undefined;
  return createPeers({ client, cert, key, ca, clock });
}

function createHypervisor(options: NodeProgramOptions, guestUser: typeof GUEST_USER | undefined): Hypervisor {
  const { nodeDir, accel, clock, log } = options;
  if (options.hypervisor === 'fake')
    return createFakeHypervisor({ clock, dir: join(nodeDir, 'simulated'), copyImages, images: realImages });
  return createQemuHypervisor({ dir: join(nodeDir, 'domains'), accel, guestUser, clock, log });
}
