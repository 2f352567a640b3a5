/** All connections to one guest besides QEMU's monitor: its console, its agent and its ports. */
import type { Duplex } from 'node:stream';
import type { Log } from '#lib/log.ts';
import { GuestAgentError, type AgentCommand, type AskAgentOptions } from '#node/hypervisor/guest-access.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import { AgentConnection } from '#node/hypervisor/qemu/guest-io/agent-connection.ts';
import { ConsoleLog, readConsoleLogFile } from '#node/hypervisor/qemu/guest-io/console-log.ts';
import { SerialConsole } from '#node/hypervisor/qemu/guest-io/console.ts';
import type { QemuContext } from '#node/hypervisor/qemu/process/context.ts';
import { AGENT_SOCKET, SERIAL_SOCKET, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { GuestFreeze, type FreezeRecord } from '#node/hypervisor/guest-freeze.ts';
import { GuestPorts, type GuestPortsOptions } from '#node/hypervisor/qemu/guest-io/guest-ports.ts';
import type { QmpClient, QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';

interface GuestChannelsOptions extends Omit<GuestPortsOptions, 'clock'> {
  readonly dir: DomainDir;
  readonly context: QemuContext;
  readonly log: Log;
  readonly frozen: () => FreezeRecord | undefined;
  readonly writeFrozen: (frozen: FreezeRecord | undefined) => Promise<void>;
  readonly hasEnded: () => boolean;
  /** Called when an agent in the guest starts or stops listening. */
  readonly onChange: () => void;
}

export class GuestChannels {
  readonly ports: GuestPorts;
  readonly freeze: GuestFreeze;
  readonly #agent: AgentConnection | undefined;
  readonly #console: SerialConsole | undefined;
  readonly #options: GuestChannelsOptions;

  constructor(options: GuestChannelsOptions) {
    this.#options = options;
    const { dir, context, log, withQmp, definition, hasEnded, onChange } = options;
    const { clock } = context;
    this.ports = new GuestPorts({ clock, withQmp, definition });
    this.freeze = new GuestFreeze({
      ...{ clock, log, hasEnded, readRecord: options.frozen, writeRecord: options.writeFrozen },
      askAgent: (command, how) => this.askAgent(command, how),
    });
    const { devices } = definition();
    const channel = devices.find(({ type }) => type === 'agent-channel');
    if (channel !== undefined) {
      const connect = () => dir.connect(AGENT_SOCKET);
      this.#agent = new AgentConnection({ deviceId: channel.id, connect, clock, onChange });
    }
    if (!devices.some(({ type }) => type === 'serial')) return;
    this.#console = new SerialConsole({
      // Each byte of a guest is a chunk of its own, and reading ahead would cost as much as without a limit.
      connect: () => dir.connect(SERIAL_SOCKET, { readAheadBytes: 1 }),
      consoleLog: new ConsoleLog(dir.consoleLog),
      clock,
      log,
    });
  }

  get view(): Pick<DomainInfo, 'agent' | 'frozenUntilMs'> {
    const { untilMs } = this.freeze;
    if (this.#agent === undefined || this.#options.hasEnded()) return {};
    const agent = this.#agent.isOpen ? 'connected' : 'disconnected';
    return { agent, ...(untilMs !== undefined && { frozenUntilMs: untilMs }) };
  }

  onEvent(event: QmpEvent): void {
    this.#agent?.onEvent(event);
    if (event.name === 'RESET')
      void this.freeze
        .clearRecord()
        .catch((err: unknown) =>
          this.#options.log.warn({ err }, 'Cannot record that the file systems of a guest are thawed'),
        );
  }

  async connect(): Promise<void> {
    await this.#console?.connect();
  }

  async connectWithRetry(): Promise<void> {
    await this.#console?.connectWithRetry();
  }

  /** Handles what happened while no node agent was connected. */
  async reconcile(): Promise<void> {
    await this.#refreshAgent();
    await this.freeze.reconcile();
    await this.ports.reconcile();
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
    await this.#options.withQmp('ping', (qmp) => qmp.execute('query-status', undefined, { timeoutMs }));
  }

  /** Called after the guest has ended. */
  async finish(timeoutMs: number): Promise<void> {
    this.#disconnect();
    await this.#console?.finish(timeoutMs);
  }

  /** Closes all connections; the guest keeps running. */
  async close(): Promise<void> {
    this.#disconnect();
    await this.#console?.close();
  }

  #disconnect(): void {
    this.freeze.close();
    this.#agent?.close();
    this.ports.close();
  }

  async #refreshAgent(): Promise<void> {
    const agent = this.#agent;
    if (agent === undefined) return;
    const found = await this.#options.withQmp('read the agent state of', (qmp) => readAgentOpen(qmp));
    if (found !== undefined) agent.setOpen(found);
  }
}

async function readAgentOpen(qmp: QmpClient): Promise<boolean | undefined> {
  const chardevs = (await qmp.execute('query-chardev')) as { label: string; 'frontend-open': boolean }[];
  return chardevs.find(({ label }) => label === 'chr-agent0')?.['frontend-open'];
}
