/** Starts the engine as its users do: the real program in its own process. Prepares it and reads from it. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadKubeconfig } from '#client/kubeconfig.ts';
import { JSON_FIELDS } from './operations.ts';
import { definitionOf, type ParcelKind } from './parcel.ts';
import { pause } from './pause.ts';
import { Program, type Command } from './program.ts';
import { RawConnection, type Target } from './raw-h2.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** The same flags as in the launcher. */
const LAUNCHER_FLAGS = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8'];
const ESTABLISHED_TIMEOUT_MS = 10_000;

export interface EngineLocation {
  readonly dataDir: string;
  readonly port: number;
  /** The directory for CPU profiles, if they are wanted. */
  readonly profileDir?: string | undefined;
  /** A script to run instead of the real program, with data directory and port as arguments. */
  readonly script?: string | undefined;
}

export function startEngineProgram(location: EngineLocation): Promise<Program> {
  return Program.start(engineCommand(location));
}

function engineCommand({ dataDir, port, profileDir, script }: EngineLocation): Command {
  const args = ['engine', '--data-dir', dataDir, '--port', String(port)];
  // Warnings and errors are shown, other log lines are not.
  const env: Record<string, string> = { SELFSAME_LOG_LEVEL: 'warn' };
  if (profileDir !== undefined) env['NODE_OPTIONS'] = `--cpu-prof --cpu-prof-dir=${profileDir}`;
  const launcher = join(ROOT, 'selfsame');
  if (script !== undefined)
    return { file: process.execPath, args: [...LAUNCHER_FLAGS, join(ROOT, script), dataDir, String(port)], env };
  if (existsSync(launcher)) return { file: launcher, args, env };
  return { file: process.execPath, args: [join(ROOT, 'src/main.ts'), ...args], env };
}

/** Returns the administrator's access, from the kubeconfig that the engine wrote. */
export function engineTarget(dataDir: string, pid: number): Promise<Target> {
  return targetOf(join(dataDir, 'kubeconfig'), pid);
}

/** Returns the access to any API server with a client certificate. Without its pid, its CPU time is not measured. */
export async function targetOf(kubeconfig: string, pid?: number): Promise<Target> {
  const text = await readFile(kubeconfig, 'utf8');
  const access = loadKubeconfig(text, {
    readFile: (path) => {
      throw new Error(`Cannot use ${kubeconfig}: it refers to the file ${path}; expected embedded certificates`);
    },
  });
  const { hostname, port } = new URL(access.server);
  const [ca, cert, key] = [access.certificateAuthority, access.clientCertificate, access.clientKey];
  if (ca === undefined || cert === undefined || key === undefined) {
    throw new Error(`Cannot use ${kubeconfig}: it has no client certificate`);
  }
  return { host: hostname, port: Number(port), ca, cert, key, pid };
}

/** Returns the engine's server certificate, for a floor with the same TLS. */
export async function engineCertificate(dataDir: string): Promise<{ cert: string; key: string; ca: string }> {
  const [cert, key, ca] = await Promise.all(
    ['server.crt', 'server.key', 'ca.crt'].map((name) => readFile(join(dataDir, 'pki', name), 'utf8')),
  );
  return { cert: cert!, key: key!, ca: ca! };
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise<unknown>((resolve) => {
    server.close(resolve);
  });
  return port;
}

/** Creates the measured kinds and the namespaces for their objects if they do not exist, and waits for the kinds. */
export async function prepareEngine(
  target: Target,
  kinds: readonly ParcelKind[],
  namespaces: readonly string[],
): Promise<void> {
  const connection = await RawConnection.connect(target, JSON_FIELDS);
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const kind of kinds) await ensure(connection, definitions, definitionOf(kind));
  for (const name of namespaces) {
    await ensure(connection, '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const deadline = performance.now() + ESTABLISHED_TIMEOUT_MS;
  for (const { metadata } of kinds.map(definitionOf)) {
    for (;;) {
      const { body } = await connection.exchange('GET', `${definitions}/${metadata.name}`);
      if (isEstablished(body)) break;
      if (performance.now() > deadline) throw new Error(`Cannot measure: ${metadata.name} is not Established`);
      await pause(20);
    }
  }
  connection.close();
}

export function create(connection: RawConnection, path: string, object: object): Promise<void> {
  return post(connection, path, object, [201]);
}

/** Like create, but accepts an existing object. */
function ensure(connection: RawConnection, path: string, object: object): Promise<void> {
  return post(connection, path, object, [201, 409]);
}

async function post(
  connection: RawConnection,
  path: string,
  object: object,
  expected: readonly number[],
): Promise<void> {
  const { status, body } = await connection.exchange('POST', path, Buffer.from(JSON.stringify(object)));
  if (!expected.includes(status))
    throw new Error(`Cannot create an object at ${path}: the response has status ${status}: ${body.toString()}`);
}

function isEstablished(body: Buffer): boolean {
  const { status } = JSON.parse(body.toString()) as { status?: { conditions?: { type: string; status: string }[] } };
  return (
    status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True') ?? false
  );
}

/** Returns the body of a GET from the engine. */
export async function fetchBody(target: Target, path: string): Promise<Buffer> {
  const connection = await RawConnection.connect(target, JSON_FIELDS);
  const { status, body } = await connection.exchange('GET', path);
  connection.close();
  if (status !== 200) throw new Error(`Cannot read ${path}: the response has status ${status}: ${body.toString()}`);
  return body;
}
