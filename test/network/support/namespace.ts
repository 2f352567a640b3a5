/** Network namespaces that a test makes, each with a small Python program that sends, listens and watches there. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const AGENT = join(import.meta.dirname, 'namespace-agent.py');

/** The reason to skip tests with network namespaces on this machine; false if it supports them. */
export function namespaceSkipReason(): string | false {
  if (process.getuid?.() !== 0) return 'only root can create network namespaces';
  try {
    execFileSync('unshare', ['-n', 'nft', 'list', 'ruleset'], { stdio: 'pipe' });
    return false;
  } catch (error) {
    return `this machine has no network namespaces or no nftables: ${(error as Error).message}`;
  }
}

export interface Target {
  readonly protocol: 'tcp' | 'udp' | 'icmp';
  readonly host: string;
  readonly port?: number;
  /** The local port. */
  readonly from?: number;
  /** Bytes of a datagram. */
  readonly size?: number;
  /** Waits for the answer. */
  readonly answers?: boolean;
}

interface Reached {
  readonly answered: boolean;
  /** The address and port of the caller, as the answering side saw them. */
  readonly data?: string;
  readonly error?: string;
}

export class Namespace {
  readonly name: string;
  readonly path: string;
  readonly #agent: ChildProcess;
  readonly #answers: ((line: string) => void)[] = [];

  constructor(name: string) {
    this.name = name;
    this.path = `/run/netns/${name}`;
    execFileSync('ip', ['netns', 'add', name]);
    this.run('ip link set lo up');
    this.#agent = spawn('nsenter', [`--net=${this.path}`, '/usr/bin/python3', AGENT], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: this.#agent.stdout! });
    lines.on('line', (line) => this.#answers.shift()?.(line));
    lines.on('close', () => {
      for (const answer of this.#answers.splice(0)) answer('{"error":"the program in the namespace has ended"}');
    });
  }

  /** Runs a shell script in the namespace. */
  run(script: string): string {
    const args = [`--net=${this.path}`, 'sh', '-ec', script];
    return execFileSync('nsenter', args, { encoding: 'utf8', stdio: 'pipe', timeout: 20_000 });
  }

  /** Starts echo servers. A repeated call does nothing. */
  async listen(ports: { tcp?: readonly number[]; udp?: readonly number[] }): Promise<void> {
    await this.#request({ operation: 'listen', ...ports });
  }

  async serveNames(address: string, answer: string): Promise<void> {
    await this.#request({ operation: 'names', address, answer });
  }

  /** Asks all targets at once. Targets without `answers` count as silent once the marker, asked last, has answered. */
  async reach(targets: readonly Target[], marker?: string): Promise<Reached[]> {
    return (await this.#request({ operation: 'reach', targets, marker }))['results'] as Reached[];
  }

  /** Asks a DNS server. Code 0 is an answer, 3 says that the name does not exist. */
  async query(
    server: string,
    name: string,
    { type = 'A', protocol = 'udp' }: { type?: 'A' | 'AAAA'; protocol?: 'udp' | 'tcp' } = {},
  ): Promise<{ code: number; addresses: string[] }> {
    return (await this.#request({ operation: 'query', server, name, type, protocol })) as never;
  }

  /** Returns all datagrams that the echo servers of the namespace have received. */
  async heard(): Promise<string[]> {
    return (await this.#request({ operation: 'heard' }))['data'] as string[];
  }

  async watch(device: string): Promise<void> {
    await this.#request({ operation: 'watch', interface: device });
  }

  /** Returns the frames that have arrived, once one of them contains the marker. */
  async framesUntil(marker: Buffer): Promise<Buffer[]> {
    const { frames } = await this.#request({ operation: 'frames', until: marker.toString('hex') });
    return (frames as string[]).map((frame) => Buffer.from(frame, 'hex'));
  }

  async send(device: string, frames: readonly Buffer[]): Promise<void> {
    await this.#request({ operation: 'send', interface: device, frames: frames.map((frame) => frame.toString('hex')) });
  }

  async remove(): Promise<void> {
    const ended = new Promise((done) => this.#agent.once('exit', done));
    this.#agent.stdin!.end();
    this.#agent.kill('SIGKILL');
    await ended;
    execFileSync('ip', ['netns', 'delete', this.name]);
  }

  async #request(request: object): Promise<Record<string, unknown>> {
    const answer = new Promise<string>((resolve) => this.#answers.push(resolve));
    this.#agent.stdin!.write(`${JSON.stringify(request)}\n`);
    const { error, ...result } = JSON.parse(await answer) as Record<string, unknown> & { error?: string };
    if (error !== undefined) throw new Error(`${this.name}: ${error}`);
    return result;
  }
}
