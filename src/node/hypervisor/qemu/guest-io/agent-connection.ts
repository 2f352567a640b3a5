/**
 * A client for QEMU's guest agent protocol over the socket of the agent channel: one JSON object per line, one command
 * at a time.
 *
 *   (not connected) ──ask──► connect ─► guest-sync-delimited ─► in sync ──ask──► command ─► answer
 *         ▲                                                        │
 *         └───── closed, invalid data, or no answer in time ◄──────┘
 *
 * The channel has no sessions: the answer to a command of an earlier client reaches the next client, and a command that
 * the guest has not read yet is read later. So each connection begins with a sync number, and everything before its
 * echo is dropped. Nothing is sent while no agent listens (reported by VSERPORT_CHANGE).
 */
import type { Socket } from 'node:net';
import type { Clock } from '#lib/clock.ts';
import { isNestedDeeper } from '#lib/text/json-nesting.ts';
import { GuestAgentError, type AgentCommand, type AskAgentOptions } from '#node/hypervisor/guest-access.ts';
import type { QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';

const ANSWER_MS = 5000;
const SYNC_MS = 5000;
/** Larger than lists of file systems and users, which are the longest answers. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Deeper than any answer of a guest agent. */
const MAX_DEPTH = 64;
const MAX_WAITING = 32;
const NEWLINE = 0x0a;
/** Never part of JSON. It marks the start of an answer and makes the agent discard an incomplete command. */
const MARK = 0xff;

interface AgentConnectionOptions {
  readonly deviceId: string;
  readonly connect: () => Promise<Socket>;
  readonly clock: Clock;
  /** Called after each change of `isOpen`. */
  readonly onChange: () => void;
}

export class AgentConnection {
  readonly #options: AgentConnectionOptions;
  #isOpen = false;
  #socket: Socket | undefined;
  /** The incomplete line received so far, with spare capacity: a guest may send it byte by byte. */
  #buffer: Buffer = Buffer.alloc(0);
  #lineBytes = 0;
  /** Bytes received since the last command. A guest that sends too many is disconnected. */
  #receivedBytes = 0;
  #onAnswer: ((answer: unknown) => void) | undefined;
  #onLost: ((error: Error) => void) | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #lastSyncId = 0;

  constructor(options: AgentConnectionOptions) {
    this.#options = options;
  }

  /** Reports whether an agent listens in the guest, according to QEMU. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  onEvent({ name, data }: QmpEvent): void {
    if (name === 'VSERPORT_CHANGE' && data['id'] === this.#options.deviceId) this.setOpen(data['open'] === true);
  }

  setOpen(isOpen: boolean): void {
    if (isOpen === this.#isOpen) return;
    this.#isOpen = isOpen;
    // The next agent process would not know the commands sent so far.
    if (!isOpen) this.#disconnect(new GuestAgentError('NotConnected', 'the guest agent closed the connection'));
    this.#options.onChange();
  }

  ask(command: AgentCommand, options: AskAgentOptions = {}): Promise<unknown> {
    if (this.#waiting >= MAX_WAITING) {
      return Promise.reject(new GuestAgentError('NoAnswer', 'too many commands are waiting for the guest agent'));
    }
    this.#waiting++;
    const answer = this.#queue.then(() => this.#sendCommand(command, options)).finally(() => this.#waiting--);
    this.#queue = answer.catch(() => undefined);
    return answer;
  }

  /** Closes the connection; the guest keeps running. */
  close(): void {
    this.#isOpen = false;
    this.#disconnect(new GuestAgentError('NotConnected', 'the connection to the guest agent was closed'));
  }

  async #sendCommand(command: AgentCommand, { timeoutMs = ANSWER_MS }: AskAgentOptions): Promise<unknown> {
    if (!this.#isOpen) throw new GuestAgentError('NotConnected', 'the guest agent is not connected');
    if (this.#socket === undefined) await this.#connect();
    const answer = asObject(
      await this.#exchange(`${JSON.stringify(command)}\n`, command.execute, timeoutMs, () => true),
    );
    if (answer['error'] === undefined) return answer['return'];
    const { class: kind = '', desc = '' } = asObject(answer['error']);
    throw new GuestAgentError(
      'Refused',
      `the guest agent refused ${command.execute}: ${shorten(desc)} (${shorten(kind)})`,
    );
  }

  async #connect(): Promise<void> {
    let socket: Socket;
    try {
      socket = await this.#options.connect();
    } catch (cause) {
      throw new GuestAgentError('NotConnected', 'cannot connect to the agent channel', { cause });
    }
    if (!this.#isOpen) {
      socket.destroy();
      throw new GuestAgentError('NotConnected', 'the guest agent closed the connection');
    }
    this.#socket = socket;
    const lost = () => {
      if (this.#socket === socket)
        this.#disconnect(new GuestAgentError('NotConnected', 'the connection to the guest agent was lost'));
    };
    socket.on('error', lost);
    socket.on('end', lost);
    socket.on('close', lost);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    const id = ++this.#lastSyncId;
    const sync = { execute: 'guest-sync-delimited', arguments: { id } };
    const text = Buffer.concat([Buffer.from([MARK]), Buffer.from(`${JSON.stringify(sync)}\n`)]);
    await this.#exchange(text, sync.execute, SYNC_MS, (answer) => asObject(answer)['return'] === id);
  }

  /**
   * Sends a command and waits for its answer. Drops answers that are not wanted: late answers to earlier clients'
   * commands.
   */
  #exchange(
    text: string | Buffer,
    name: string,
    timeoutMs: number,
    isWanted: (answer: unknown) => boolean,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      if (socket === undefined)
        return reject(new GuestAgentError('NotConnected', 'the connection to the guest agent was lost'));
      const late = () =>
        this.#disconnect(
          new GuestAgentError('NoAnswer', `the guest agent did not answer ${name} within ${timeoutMs} ms`),
        );
      const cancel = this.#options.clock.after(timeoutMs, late);
      this.#onLost = (error) => {
        cancel();
        reject(error);
      };
      this.#onAnswer = (answer) => {
        if (!isWanted(answer)) return;
        cancel();
        this.#onAnswer = this.#onLost = undefined;
        resolve(answer);
      };
      this.#receivedBytes = 0;
      socket.write(text);
    });
  }

  #receive(chunk: Buffer): void {
    // No command is pending. The next command reconnects and syncs again.
    if (this.#onAnswer === undefined) {
      return this.#disconnect(new GuestAgentError('NoAnswer', 'the guest agent sent data without a command'));
    }
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > MAX_ANSWER_BYTES) {
      return this.#disconnect(
        new GuestAgentError('NoAnswer', `the guest agent sent more than ${MAX_ANSWER_BYTES} bytes`),
      );
    }
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      this.#append(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = this.#buffer.subarray(0, this.#lineBytes);
      this.#lineBytes = 0;
      this.#onLine(line.subarray(line.lastIndexOf(MARK) + 1).toString('utf8'));
    }
    this.#append(rest);
  }

  #append(piece: Buffer): void {
    const bytes = this.#lineBytes + piece.length;
    if (bytes > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(bytes, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#lineBytes);
      this.#buffer = larger;
    }
    piece.copy(this.#buffer, this.#lineBytes);
    this.#lineBytes = bytes;
  }

  #onLine(text: string): void {
    if (text.trim() === '' || isNestedDeeper(text, MAX_DEPTH)) return;
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      // The rest of an earlier answer. If it was the wanted answer, the timeout reports it.
      return;
    }
    this.#onAnswer?.(answer);
  }

  #disconnect(error: GuestAgentError): void {
    const socket = this.#socket;
    const lost = this.#onLost;
    this.#socket = this.#onAnswer = this.#onLost = undefined;
    this.#buffer = Buffer.alloc(0);
    this.#lineBytes = 0;
    socket?.destroy();
    lost?.(error);
  }
}

/** Limits a guest's text in our error messages. */
const MAX_TEXT_LENGTH = 256;

function shorten(text: unknown): string {
  return typeof text === 'string' ? text.slice(0, MAX_TEXT_LENGTH) : '?';
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
