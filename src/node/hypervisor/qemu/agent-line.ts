/**
 * QEMU's guest agent protocol over the socket of the guest's port: JSON on lines, one command at a time.
 *
 *   (not connected) ──ask──► connect ─► guest-sync-delimited ─► in step ──ask──► command ─► answer
 *         ▲                                                        │
 *         └───────── hung up, nonsense, or no answer in time ◄─────┘
 *
 * The line has no sessions: what an earlier asker was not told comes to the next, and a command that nobody in the guest
 * has read yet is read later. So the first word on a connection is a number of ours, and everything before it comes back
 * is dropped; and nothing is said at all while nobody listens (VSERPORT_CHANGE tells).
 */
import type { Socket } from 'node:net';
import type { Clock } from '#lib/clock.ts';
import { GuestAgentError, type AgentCommand, type AskAgentOptions } from '../guest-lines.ts';
import type { QmpEvent } from './qmp.ts';

const ANSWER_MS = 5000;
const SYNC_MS = 5000;
/** Lists of file systems and users are long; nothing that we ask for is longer. */
const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_WAITING = 32;
const NEWLINE = 0x0a;
/** Never part of JSON: says where an answer begins, and makes the guest forget half a command. */
const MARK = 0xff;

export interface AgentLineOptions {
  readonly deviceId: string;
  readonly connect: () => Promise<Socket>;
  readonly clock: Clock;
  /** After each change of `isOpen`. */
  readonly changed: () => void;
}

export class AgentLine {
  readonly #options: AgentLineOptions;
  #isOpen = false;
  #socket: Socket | undefined;
  /** What has come of a line so far, with room for more: a guest may send it byte by byte. */
  #heard: Buffer = Buffer.alloc(0);
  #lineBytes = 0;
  /** Since something was asked: a guest that goes on talking is hung up on. */
  #heardBytes = 0;
  #listener: ((answer: unknown) => void) | undefined;
  #lost: ((error: Error) => void) | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #number = 0;

  constructor(options: AgentLineOptions) {
    this.#options = options;
  }

  /** Whether somebody in the guest listens, as QEMU says. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  heard({ name, data }: QmpEvent): void {
    if (name === 'VSERPORT_CHANGE' && data['id'] === this.#options.deviceId) this.tell(data['open'] === true);
  }

  tell(isOpen: boolean): void {
    if (isOpen === this.#isOpen) return;
    this.#isOpen = isOpen;
    // Another process of the guest will be at the other end.
    if (!isOpen) this.#hangUp(new GuestAgentError('NotConnected', 'the guest agent has hung up'));
    this.#options.changed();
  }

  ask(command: AgentCommand, options: AskAgentOptions = {}): Promise<unknown> {
    if (this.#waiting >= MAX_WAITING) {
      return Promise.reject(new GuestAgentError('NoAnswer', 'too many commands wait for the guest agent already'));
    }
    this.#waiting++;
    const answer = this.#turn.then(() => this.#askNow(command, options)).finally(() => this.#waiting--);
    this.#turn = answer.catch(() => undefined);
    return answer;
  }

  /** Hangs up; the guest goes on. */
  close(): void {
    this.#isOpen = false;
    this.#hangUp(new GuestAgentError('NotConnected', 'the line to the guest agent was closed'));
  }

  async #askNow(command: AgentCommand, { timeoutMs = ANSWER_MS }: AskAgentOptions): Promise<unknown> {
    if (!this.#isOpen) throw new GuestAgentError('NotConnected', 'the guest agent is not connected');
    if (this.#socket === undefined) await this.#connect();
    const answer = asObject(
      await this.#exchange(`${JSON.stringify(command)}\n`, command.execute, timeoutMs, () => true),
    );
    if (answer['error'] === undefined) return answer['return'];
    const { class: kind = '', desc = '' } = asObject(answer['error']);
    throw new GuestAgentError('Refused', `the guest agent refused ${command.execute}: ${cut(desc)} (${cut(kind)})`);
  }

  async #connect(): Promise<void> {
    let socket: Socket;
    try {
      socket = await this.#options.connect();
    } catch (cause) {
      throw new GuestAgentError('NotConnected', 'the line to the guest agent cannot be reached', { cause });
    }
    if (!this.#isOpen) {
      socket.destroy();
      throw new GuestAgentError('NotConnected', 'the guest agent has hung up');
    }
    this.#socket = socket;
    const lost = () => {
      if (this.#socket === socket)
        this.#hangUp(new GuestAgentError('NotConnected', 'the line to the guest agent broke'));
    };
    socket.on('error', lost);
    socket.on('end', lost);
    socket.on('close', lost);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    const id = ++this.#number;
    const sync = { execute: 'guest-sync-delimited', arguments: { id } };
    const text = Buffer.concat([Buffer.from([MARK]), Buffer.from(`${JSON.stringify(sync)}\n`)]);
    await this.#exchange(text, sync.execute, SYNC_MS, (answer) => asObject(answer)['return'] === id);
  }

  /** Drops what is not wanted: late answers to commands of others. */
  #exchange(
    text: string | Buffer,
    name: string,
    timeoutMs: number,
    isWanted: (answer: unknown) => boolean,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      if (socket === undefined) return reject(new GuestAgentError('NotConnected', 'the line to the guest agent broke'));
      const late = () =>
        this.#hangUp(new GuestAgentError('NoAnswer', `the guest agent did not answer ${name} within ${timeoutMs} ms`));
      const cancel = this.#options.clock.after(timeoutMs, late);
      this.#lost = (error) => {
        cancel();
        reject(error);
      };
      this.#listener = (answer) => {
        if (!isWanted(answer)) return;
        cancel();
        this.#listener = this.#lost = undefined;
        resolve(answer);
      };
      this.#heardBytes = 0;
      socket.write(text);
    });
  }

  #receive(chunk: Buffer): void {
    // Nobody asked: the next one begins anew, in step.
    if (this.#listener === undefined) {
      return this.#hangUp(new GuestAgentError('NoAnswer', 'the guest agent spoke without being asked'));
    }
    this.#heardBytes += chunk.length;
    if (this.#heardBytes > MAX_ANSWER_BYTES) {
      return this.#hangUp(new GuestAgentError('NoAnswer', `an answer is longer than ${MAX_ANSWER_BYTES} bytes`));
    }
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      this.#append(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = this.#heard.subarray(0, this.#lineBytes);
      this.#lineBytes = 0;
      this.#line(line.subarray(line.lastIndexOf(MARK) + 1).toString('utf8'));
    }
    this.#append(rest);
  }

  #append(piece: Buffer): void {
    const bytes = this.#lineBytes + piece.length;
    if (bytes > this.#heard.length) {
      const larger = Buffer.alloc(Math.max(bytes, 2 * this.#heard.length));
      this.#heard.copy(larger, 0, 0, this.#lineBytes);
      this.#heard = larger;
    }
    piece.copy(this.#heard, this.#lineBytes);
    this.#lineBytes = bytes;
  }

  #line(text: string): void {
    if (text.trim() === '') return;
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      // Half a line of before; if it was for us, the time limit says so.
      return;
    }
    this.#listener?.(answer);
  }

  #hangUp(error: GuestAgentError): void {
    const socket = this.#socket;
    const lost = this.#lost;
    this.#socket = this.#listener = this.#lost = undefined;
    this.#heard = Buffer.alloc(0);
    this.#lineBytes = 0;
    socket?.destroy();
    lost?.(error);
  }
}

/** Words of a guest in a message of ours. */
const MAX_WORDS = 256;

function cut(words: unknown): string {
  return typeof words === 'string' ? words.slice(0, MAX_WORDS) : '?';
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
