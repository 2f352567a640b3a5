/**
 * `selfsame up`: runs the engine, our components beside it, and one process for each node of this machine. engine.ts
 * and node-dir.ts describe the data directory.
 */
import { HOST_READER } from '#api/host-api.ts';
import type { Client } from '#client/client.ts';
import { startEngine, type EngineOptions } from '#engine/engine.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { renewOnRead, renewWeekly } from '#lib/renewals.ts';
import { SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import type { GuestNetworkOptions } from '#plane/embedded/guest-network.ts';
import { admitHostOperator, admitNode } from '#plane/embedded/admit-node.ts';
import { nodeDirOf, sharedDirOf } from '#plane/node/node-dir.ts';
import { NodeProcesses } from '#plane/embedded/node-processes.ts';
import { startPlaneComponents } from '#plane/embedded/plane-components.ts';
import { createNodeConnections } from '#subresources/node-connections.ts';

interface PlaneOptions extends Omit<EngineOptions, 'services' | 'readyChecks'> {
  readonly nodes: number;
  /** The subnets of the GuestNetwork `default`, which is created if it is absent; none is created without them. */
  readonly guestNetwork?: GuestNetworkOptions | undefined;
  /** The program with its arguments before `node`, and the flags of all nodes. */
  readonly program: {
    readonly file: string;
    readonly args: readonly string[];
    readonly nodeFlags: readonly string[];
    /** Environment without variables that a node would read as flags; by default that of this process. */
    readonly env?: Readonly<Record<string, string | undefined>>;
  };
}

interface Plane {
  readonly url: string;
  readonly kubeconfigPath: string;
  /** Nodes that did not start in time; they are retried. */
  readonly lateNodes: readonly string[];
  stop(): Promise<void>;
}

const CERTIFICATE_DAYS = 365;
const NODE_WAIT_MS = 30_000;

export async function startPlane(options: PlaneOptions): Promise<Plane> {
  const { dataDir, clock, log } = options;
  const services = new LocalServices();
  let isInstalled = false;
  const installed = {
    name: 'selfsame',
    check: () => (isInstalled ? undefined : 'admission of our kinds is not in place yet'),
  };
  const engine = await startEngine({ ...options, services, readyChecks: [installed] });
  const cleanups: (() => Promise<void> | void)[] = [() => engine.stop()];
  const stop = async () => {
    for (let end = cleanups.pop(); end !== undefined; end = cleanups.pop()) await end();
  };
  try {
    const { handler, pki, metrics, url, kubeconfigPath } = engine;
    // Node agents authorize clients by their common name.
    const connectionsOf = (user: string) => (client: Client) => {
      const identity = renewOnRead(() => {
        const { certPem: cert, keyPem: key } = pki.issueClientCertificate({ user, groups: [], days: CERTIFICATE_DAYS });
        return { cert, key, ca: pki.caPem };
      }, clock);
      const connections = createNodeConnections({ client, ...identity(), currentIdentity: identity, clock });
      cleanups.push(() => connections.close());
      return connections;
    };
    const parts = await startPlaneComponents({
      handler,
      services,
      nodes: connectionsOf(SUBRESOURCES_SERVICE),
      hosts: connectionsOf(HOST_READER),
      metrics,
      guestNetwork: options.guestNetwork,
      clock,
      log,
    });
    cleanups.push(() => parts.stop());
    void parts.installed.then((holds) => (isInstalled = holds));

    const names = Array.from({ length: options.nodes }, (_, index) => `node-${index + 1}`);
    const admitAll = async () => {
      await admitHostOperator(dataDir, pki);
      for (const name of names) await admitNode(dataDir, name, { pki, url });
    };
    await admitAll();
    cleanups.push(renewWeekly(admitAll, { clock, log }));
    const processes = new NodeProcesses({ nodes: names.map((name) => nodeCommand(options, name)), clock, log });
    cleanups.push(() => processes.stop());
    const lateNodes = await processes.ready(NODE_WAIT_MS);
    return { url, kubeconfigPath, lateNodes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function nodeCommand({ dataDir, program }: PlaneOptions, name: string) {
  const dir = nodeDirOf(dataDir, name);
  const flags = ['--name', name, '--data-dir', dir, '--shared-dir', sharedDirOf(dataDir), ...program.nodeFlags];
  const { file, args, env } = program;
  return { name, dataDir: dir, file, args: [...args, 'node', ...flags], ...(env && { env }) };
}
