/**
 * The processes that the measurements use: the engine with its stock of parcels, the floors and the load generator,
 * each in its own process, in a directory that is removed with them.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BareHttp2Job } from './bare-http2.ts';
import type { BareStoreJob } from './bare-store.ts';
import { fetchBody, engineCertificate, engineTarget, freePort, startEngineProgram } from './engine-process.ts';
import { JobProcess } from './jobs.ts';
import type { LoadJob } from './load.ts';
import type { Stock } from './operations.ts';
import { collectionPath, parcelPath } from './parcel.ts';
import { Program } from './program.ts';
import type { Target } from './raw-h2.ts';
import type { WebhookServerJob } from './webhook-server.ts';

/** 10,000 parcels in two namespaces: one is read and listed, the other is patched. */
export const READ_STOCK: Stock = { namespace: 'shelf-a', prefix: 'a', count: 5000 };
export const PATCH_STOCK: Stock = { namespace: 'shelf-b', prefix: 'b', count: 5000 };
export const CREATE_NAMESPACE = 'yard';
export const WATCH_NAMESPACE = 'lookout';
export const NAMESPACES = [READ_STOCK.namespace, PATCH_STOCK.namespace, CREATE_NAMESPACE, WATCH_NAMESPACE];

const CACHE = fileURLToPath(new URL('../.cache', import.meta.url));

export class EngineBench {
  readonly load = new JobProcess<LoadJob>('./load.ts');
  readonly #dir: string;
  readonly #port: number;
  readonly #profileDir: string | undefined;
  readonly #cleanups: (() => Promise<void>)[] = [];
  #engine: Program | undefined;

  static async prepare(profileDir: string | undefined): Promise<EngineBench> {
    // Below the project and not in /tmp, which may be in memory, where nothing is durable.
    await mkdir(CACHE, { recursive: true });
    return new EngineBench(await mkdtemp(join(CACHE, 'bench-')), await freePort(), profileDir);
  }

  private constructor(dir: string, port: number, profileDir: string | undefined) {
    this.#dir = dir;
    this.#port = port;
    this.#profileDir = profileDir;
  }

  get dataDir(): string {
    return join(this.#dir, 'data');
  }

  get engine(): Program {
    if (this.#engine === undefined) throw new Error('Cannot measure: the engine does not run');
    return this.#engine;
  }

  target(): Promise<Target> {
    return engineTarget(this.dataDir, this.engine.pid);
  }

  async startEngine({ isProfiled = false, script }: { isProfiled?: boolean; script?: string } = {}): Promise<Program> {
    const profileDir = isProfiled ? this.#profileDir : undefined;
    const location = { dataDir: this.dataDir, port: this.#port, profileDir, script };
    return (this.#engine = await startEngineProgram(location));
  }

  async stopEngine(): Promise<void> {
    await this.#engine?.stop();
    this.#engine = undefined;
  }

  openBareStore(): Promise<Program> {
    const script = fileURLToPath(new URL('./bare-store-open.ts', import.meta.url));
    return Program.start({
      file: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', script, join(this.dataDir, 'store.db')],
      // The same cache as the engine's launcher.
      env: { NODE_COMPILE_CACHE: join(CACHE, 'node-compile') },
    });
  }

  /** Starts a bare server that returns the current responses of the engine. Also returns the size of one object. */
  async startBareHttp2(): Promise<{ target: Target; objectBytes: number }> {
    const engine = await this.target();
    const object = await fetchBody(engine, parcelPath(READ_STOCK.namespace, READ_STOCK.prefix, 0));
    const files = { object: join(this.#dir, 'object.json'), list: join(this.#dir, 'list.json') };
    await writeFile(files.object, object);
    await writeFile(files.list, await fetchBody(engine, collectionPath(READ_STOCK.namespace)));
    const bare = new JobProcess<BareHttp2Job>('./bare-http2.ts');
    this.#cleanups.push(() => bare.stop());
    const port = await bare.run<number>({ kind: 'start', ...(await engineCertificate(this.dataDir)) });
    await bare.run({ kind: 'bodies', ...files });
    return { target: { ...engine, host: '127.0.0.1', port, pid: bare.pid }, objectBytes: object.length };
  }

  /** Starts the webhook in another process, with the engine's own certificate. Returns its port. */
  async startWebhook(): Promise<number> {
    const webhook = new JobProcess<WebhookServerJob>('./webhook-server.ts');
    this.#cleanups.push(() => webhook.stop());
    return webhook.run<number>({ kind: 'start', ...(await engineCertificate(this.dataDir)) });
  }

  async startBareStore(): Promise<JobProcess<BareStoreJob>> {
    const bare = new JobProcess<BareStoreJob>('./bare-store.ts');
    this.#cleanups.push(() => bare.stop());
    await bare.run({ kind: 'open', file: join(this.#dir, 'bare.db') });
    return bare;
  }

  async tearDown(): Promise<void> {
    await Promise.all([this.stopEngine(), this.load.stop(), ...this.#cleanups.map((end) => end())]);
    await rm(this.#dir, { recursive: true, force: true });
  }
}
