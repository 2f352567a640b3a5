/**
 * Access to a guest besides its console: its network ports and its guest agent. The guest is not trusted: its answers
 * have an unknown shape and are limited in size and time.
 */
import type { Duplex } from 'node:stream';

export interface GuestPort {
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
}

export interface OpenPortOptions {
  /** Time for the guest to accept the connection; default: 10 seconds. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A command of QEMU's guest agent protocol. */
export interface AgentCommand {
  readonly execute: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

export interface AskAgentOptions {
  /** Default: 5 seconds. */
  readonly timeoutMs?: number;
}

/**
 * Reasons why an agent command failed.
 *
 * - NoChannel: the guest has no agent channel.
 * - NotConnected: no agent listens on the channel.
 * - NoAnswer: no valid answer arrived in time.
 * - Refused: the agent answered with an error.
 */
export type AgentErrorReason = 'NoChannel' | 'NotConnected' | 'NoAnswer' | 'Refused';

export class GuestAgentError extends Error {
  override readonly name = 'GuestAgentError';
  readonly reason: AgentErrorReason;

  constructor(reason: AgentErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
  }
}

export interface FreezeOptions {
  /** The guest is thawed after this time, by this process or by the next one. */
  readonly timeoutMs: number;
  /** `snapshot`: the freeze belongs to one snapshot call of this process; the next process thaws it at once. */
  readonly why: 'snapshot' | 'asked';
}

export interface GuestAccess {
  /**
   * Connects to a port of the guest through its first interface in user mode. Resolves when the guest has accepted the
   * connection. For a UDP port each chunk is a datagram. The connection ends with the domain, or when either side
   * closes it.
   */
  openPort(id: string, port: GuestPort, options?: OpenPortOptions): Promise<Duplex>;
  /** Runs one agent command at a time per guest and returns its answer; throws GuestAgentError. */
  askAgent(id: string, command: AgentCommand, options?: AskAgentOptions): Promise<unknown>;
  /**
   * Freezes the guest's file systems through its agent: the guest writes nothing until `thaw`, or until the timeout.
   * After a failure the guest is thawed again. If it is frozen already, only the timeout changes. Throws
   * GuestAgentError.
   */
  freeze(id: string, options: FreezeOptions): Promise<void>;
  /** Does nothing if the guest is not frozen. */
  thaw(id: string): Promise<void>;
}
