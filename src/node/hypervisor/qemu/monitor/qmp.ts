/**
 * A client of the QEMU Machine Protocol over one stream: greeting, capabilities, commands with ids, and events. Callers
 * provide the stream and interpret the answers. Buffers and pending commands are limited: a QEMU that a guest has
 * compromised can send nonsense, but not fill our memory.
 */
import type { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import { isNestedDeeper } from '#lib/text/json-nesting.ts';

const MAX_LINE_BYTES = 4 * 1024 * 1024;
/** Deeper than any answer of QEMU. */
const MAX_DEPTH = 256;
const MAX_IN_FLIGHT = 128;
const GREETING_TIMEOUT_MS = 10_000;
const COMMAND_TIMEOUT_MS = 10_000;
const NEWLINE = 0x0a;

/** QEMU refused a command or could not be reached. */
export class QmpError extends Error {
  override readonly name = 'QmpError';
  /** `GenericError`, `DeviceNotFound`, `CommandNotFound` ...; `Disconnected` and `Timeout` are our own. */
  readonly class: string;

  constructor(errorClass: string, message: string) {
    super(message);
    this.class = errorClass;
  }
}

export interface QmpEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface QmpOptions {
  readonly clock: Clock;
  readonly greetingTimeoutMs?: number;
  readonly onEvent?: (event: QmpEvent) => void;
  /** Called once when the stream has ended for any reason other than `close`. */
  readonly onClose?: () => void;
}

interface Pending {
  readonly command: string;
  readonly cancel: () => void;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class QmpClient {
  readonly #stream: Duplex;
  readonly #options: QmpOptions;
  readonly #pending = new Map<number, Pending>();
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;
  #nextId = 1;
  #closed = false;
  #onGreeting: (() => void) | undefined;
  #onFailure: ((error: Error) => void) | undefined;

  private constructor(stream: Duplex, options: QmpOptions) {
    this.#stream = stream;
    this.#options = options;
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    stream.on('error', () => stream.destroy());
    stream.on('end', () => stream.destroy());
    stream.on('close', () => this.#end(new QmpError('Disconnected', 'QEMU closed the connection'), true));
  }

  /** Resolves when QEMU accepts commands. */
  static async open(stream: Duplex, options: QmpOptions): Promise<QmpClient> {
    const client = new QmpClient(stream, options);
    try {
      await client.#waitForGreeting();
      await client.execute('qmp_capabilities');
    } catch (error) {
      client.close();
      throw error;
    }
    return client;
  }

  /** Runs a command and returns its result. Answers after the timeout are dropped. */
  execute(command: string, args?: object, { timeoutMs = COMMAND_TIMEOUT_MS } = {}): Promise<unknown> {
    if (this.#closed)
      return Promise.reject(new QmpError('Disconnected', `Cannot run QMP command "${command}": not connected`));
    if (this.#pending.size >= MAX_IN_FLIGHT) {
      return Promise.reject(new QmpError('Busy', `Cannot run QMP command "${command}": too many commands are pending`));
    }
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const cancel = this.#options.clock.after(timeoutMs, () => {
        this.#pending.delete(id);
        reject(new QmpError('Timeout', `QEMU did not answer "${command}" within ${timeoutMs} ms`));
      });
      this.#pending.set(id, { command, cancel, resolve, reject });
      this.#stream.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    });
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Closes the connection; QEMU keeps running. */
  close(): void {
    this.#end(new QmpError('Disconnected', 'the connection to QEMU was closed'), false);
    this.#stream.destroy();
  }

  #waitForGreeting(): Promise<void> {
    const timeoutMs = this.#options.greetingTimeoutMs ?? GREETING_TIMEOUT_MS;
    return new Promise((resolve, reject) => {
      const cancel = this.#options.clock.after(timeoutMs, () => {
        reject(new QmpError('Timeout', `QEMU did not send its greeting within ${timeoutMs} ms`));
      });
      this.#onGreeting = () => {
        cancel();
        resolve();
      };
      this.#onFailure = (error) => {
        cancel();
        reject(error);
      };
    });
  }

  #receive(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end !== -1 && !this.#closed; end = rest.indexOf(NEWLINE)) {
      this.#chunks.push(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = Buffer.concat(this.#chunks).toString('utf8');
      this.#chunks = [];
      this.#bufferedBytes = 0;
      this.#onLine(line);
    }
    if (rest.length === 0) return;
    this.#chunks.push(rest);
    this.#bufferedBytes += rest.length;
    if (this.#bufferedBytes > MAX_LINE_BYTES) this.#stream.destroy();
  }

  #onLine(text: string): void {
    if (text.trim() === '') return;
    const message = parseObject(text);
    if (message === undefined) {
      this.#stream.destroy();
    } else if (typeof message.event === 'string') {
      this.#options.onEvent?.({ name: message.event, data: asObject(message.data) });
    } else if (message.QMP !== undefined) {
      this.#onGreeting?.();
    } else if (typeof message.id === 'number') {
      this.#onAnswer(message.id, message);
    }
  }

  #onAnswer(id: number, message: Record<string, unknown>): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    pending.cancel();
    if (message.error === undefined) {
      pending.resolve(message.return);
      return;
    }
    const { class: errorClass, desc } = asObject(message.error);
    pending.reject(new QmpError(asText(errorClass), `QEMU refused "${pending.command}": ${asText(desc)}`));
  }

  #end(error: QmpError, shouldNotify: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onFailure?.(error);
    for (const { cancel, reject } of this.#pending.values()) {
      cancel();
      reject(error);
    }
    this.#pending.clear();
    if (shouldNotify) this.#options.onClose?.();
  }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (isNestedDeeper(text, MAX_DEPTH)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * Returns a text of an answer or an event, or '' for any other value. String() would throw for an object with a field
 * `toString`.
 */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
