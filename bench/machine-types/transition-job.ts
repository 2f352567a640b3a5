/**
 * The Job that changes machine types, run as a node agent runs it: the real program in its own process, with a token of
 * the Job's account. The Job object is suspended, so that no node runs it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TRANSITION_JOBS } from '#api/machine-types/kinds.ts';
import { JOB_PREFIX, TRANSITION_ACCOUNT, TRANSITION_COMMAND, TRANSITION_CONTAINER } from '#api/machine-types/names.ts';
import { optionsToEnv, type TransitionOptions } from '#api/machine-types/options.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { cpuMs } from '../proc-files.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import { parseSpans, type Spans } from './job-log.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOKEN_SECONDS = 3600;

interface TokenRequest extends KubeObject {
  readonly spec: { readonly expirationSeconds: number };
  readonly status?: { readonly token?: string };
}

const TOKENS: ResourceType<TokenRequest> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

export interface JobRun extends Spans {
  /** From the call of the program until it has exited. */
  readonly seconds: number;
  readonly serverCpuMs: number;
}

/** Runs the Job until it is complete, and deletes the Job object. */
export async function runTransitionJob(bench: VmBench, options: TransitionOptions): Promise<JobRun> {
  const client = await bench.client();
  const job = await client.create(TRANSITION_JOBS, suspendedJob());
  const name = { namespace: SYSTEM_NAMESPACE, name: job.metadata.name };
  const env = { ...(await accessEnvironment(bench)), JOB_NAME: name.name };
  for (const variable of optionsToEnv(options)) Object.assign(env, { [variable.name]: variable.value });
  const run = await runProgram(bench, env);
  await client.delete(TRANSITION_JOBS, name, { propagationPolicy: 'Background' });
  return run;
}

function suspendedJob() {
  const containers = [{ name: TRANSITION_CONTAINER, image: 'selfsame/selfsame', args: [TRANSITION_COMMAND] }];
  return {
    apiVersion: 'batch/v1',
    kind: TRANSITION_JOBS.kind,
    metadata: { generateName: JOB_PREFIX, namespace: SYSTEM_NAMESPACE },
    spec: { suspend: true, template: { spec: { restartPolicy: 'OnFailure', containers } } },
  };
}

/** Returns the environment that an agent would set. */
async function accessEnvironment(bench: VmBench): Promise<Record<string, string>> {
  const { host, port, ca } = await bench.target();
  const metadata = { name: TRANSITION_ACCOUNT, namespace: SYSTEM_NAMESPACE };
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata,
    spec: { expirationSeconds: TOKEN_SECONDS },
  };
  const { status } = await (await bench.client()).create(TOKENS, request, { subresource: 'token' });
  const files = { token: join(bench.dir, 'token'), ca: join(bench.dir, 'ca.crt') };
  await writeFile(files.token, status?.token ?? '', { mode: 0o600 });
  await writeFile(files.ca, ca);
  return {
    SELFSAME_API_SERVER: `https://${host}:${port}`,
    SELFSAME_TOKEN_FILE: files.token,
    SELFSAME_CA_FILE: files.ca,
  };
}

async function runProgram(bench: VmBench, env: Readonly<Record<string, string>>): Promise<JobRun> {
  const file = join(bench.dir, 'job.log');
  const log = await open(file, 'w');
  try {
    const server = bench.plane.pid;
    const [serverBefore, from, fromMs] = [cpuMs(server), performance.now(), performance.timeOrigin + performance.now()];
    const child = spawn(join(ROOT, 'selfsame'), [TRANSITION_COMMAND], {
      stdio: ['ignore', log.fd, log.fd],
      env: { ...process.env, ...env },
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    const seconds = (performance.now() - from) / 1000;
    const serverCpuMs = cpuMs(server) - serverBefore;
    const text = await readFile(file, 'utf8');
    if (code !== 0) throw new Error(`Cannot measure the Job: it exited with code ${code}: ${text.slice(-2000)}`);
    return { seconds, serverCpuMs, ...parseSpans(text, fromMs) };
  } finally {
    await log.close();
  }
}
