/** All connections to one guest besides QEMU's monitor: its console, its agent and its ports. */
import type { Duplex } from 'node:stream';
import type { Log } from '#lib/log.ts';
import { GuestAgentError, type AgentCommand, type AskAgentOptions } from '../guest-lines.ts';
import type { Domain } from '../hypervisor.ts';
import { AgentLine } from './agent-line.ts';
import { ConsoleLog, readConsoleLogFile } from './console-log.ts';
import { SerialConsole } from './console.ts';
import type { QemuContext } from './context.ts';
import { AGENT_SOCKET, SERIAL_SOCKET, type DomainDir } from './domain-dir.ts';
import { GuestFreeze, type FreezeRecord } from '../guest-freeze.ts';
import { GuestPorts, type GuestPortsOptions } from './guest-ports.ts';
import type { QmpClient, QmpEvent } from './qmp.ts';

export interface LinesOptions extends Omit<GuestPortsOptions, 'clock'> {
  readonly dir: DomainDir;
  readonly context: QemuContext;
  readonly log: Log;
  readonly frozen: () => FreezeRecord | undefined;
  readonly writeFrozen: (frozen: FreezeRecord | undefined) => Promise<void>;
  readonly hasEnded: () => boolean;
  /** Called when an agent in the guest starts or stops listening. */
  readonly changed: () => void;
}

export class Lines {
  readonly ports: GuestPorts;
  readonly freeze: GuestFreeze;
  readonly #agent: AgentLine | undefined;
  readonly #console: SerialConsole | undefined;
  readonly #options: LinesOptions;

  constructor(options: LinesOptions) {
    this.#options = options;
    const { dir, context, log, ask, definition, hasEnded, changed } = options;
    const { clock } = context;
    this.ports = new GuestPorts({ clock, ask, definition });
    this.freeze = new GuestFreeze({
      ...{ clock, log, hasEnded, record: options.frozen, write: options.writeFrozen },
      ask: (command, how) => this.askAgent(command, how),
    });
    const { devices } = definition();
    const channel = devices.find(({ type }) => type === 'agent-channel');
    if (channel !== undefined) {
      const connect = () => dir.connect(AGENT_SOCKET);
      this.#agent = new AgentLine({ deviceId: channel.id, connect, clock, changed });
    }
    if (!devices.some(({ type }) => type === 'serial')) return;
    this.#console = new SerialConsole({
      connect: () => dir.connect(SERIAL_SOCKET),
      log: new ConsoleLog(dir.consoleLog),
      clock,
      report: log,
    });
  }

  get view(): Pick<Domain, 'agent' | 'frozenUntilMs'> {
    const { untilMs } = this.freeze;
    if (this.#agent === undefined || this.#options.hasEnded()) return {};
    const agent = this.#agent.isOpen ? 'connected' : 'disconnected';
    return { agent, ...(untilMs !== undefined && { frozenUntilMs: untilMs }) };
  }

  heard(event: QmpEvent): void {
    this.#agent?.heard(event);
    if (event.name === 'RESET')
      void this.freeze
        .forget()
        .catch((err: unknown) =>
          this.#options.log.warn({ err }, 'cannot record that the file systems of a guest are thawed'),
        );
  }

  async attach(): Promise<void> {
    await this.#console?.connect();
  }

  async attachEventually(): Promise<void> {
    await this.#console?.connectEventually();
  }

  /** Handles what happened while no node agent was connected. */
  async settle(): Promise<void> {
    await this.#lookAtAgent();
    await this.freeze.settle();
    await this.ports.settle();
  }

  openConsole(): Duplex | undefined {
    return this.#console?.open();
  }

  readConsoleLog(): Promise<Buffer> {
    return readConsoleLogFile(this.#options.dir.consoleLog);
  }

  askAgent(command: AgentCommand, options?: AskAgentOptions): Promise<unknown> {
    if (this.#agent !== undefined) return this.#agent.ask(command, options);
    return Promise.reject(new GuestAgentError('NoChannel', 'the guest has no agent channel'));
  }

  /** Rejects if QEMU cannot be reached or does not answer in time. */
  async ping(timeoutMs: number): Promise<void> {
    await this.#options.ask('ping', (qmp) => qmp.execute('query-status', undefined, { timeoutMs }));
  }

  /** Called after the guest has ended. */
  async finish(lastWordsMs: number): Promise<void> {
    this.#hangUp();
    await this.#console?.finish(lastWordsMs);
  }

  /** Closes all connections; the guest keeps running. */
  async close(): Promise<void> {
    this.#hangUp();
    await this.#console?.close();
  }

  #hangUp(): void {
    this.freeze.close();
    this.#agent?.close();
    this.ports.close();
  }

  async #lookAtAgent(): Promise<void> {
    const agent = this.#agent;
    if (agent === undefined) return;
    const found = await this.#options.ask('read the agent state of', (qmp) => readOpen(qmp));
    if (found !== undefined) agent.tell(found);
  }
}

async function readOpen(qmp: QmpClient): Promise<boolean | undefined> {
  const chardevs = (await qmp.execute('query-chardev')) as { label: string; 'frontend-open': boolean }[];
  return chardevs.find(({ label }) => label === 'chr-agent0')?.['frontend-open'];
}
