/**
 * Parses QEMU's view of its user-mode network (`info usernet`). Pure.
 *
 *   Hub -1 (net-default):
 *     Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
 *     TCP[HOST_FORWARD]  12       127.0.0.1 40231       10.0.2.15  8080     0     0
 *     TCP[ESTABLISHED]   13       127.0.0.1 40231       10.0.2.15  8080     0     0
 *
 * For connections from outside, the source port is the port of this host to which the client connected.
 */
export interface UsernetEntry {
  /** Absent if the text does not name it. */
  readonly netdev?: string;
  readonly protocol: 'tcp' | 'udp';
  readonly state: string;
  readonly hostPort: number;
  readonly guestPort: number;
}

const HEADING = /\((?<netdev>[^()]+)\):\s*$/;
const ROW =
  /^\s*(?<protocol>TCP|UDP)\[(?<state>[A-Z0-9_]+)[^\]]*\]\s+-?\d+\s+127\.0\.0\.1\s+(?<host>\d+)\s+\S+\s+(?<guest>\d+)\s/;

export function parseUsernet(text: string): UsernetEntry[] {
  const found: UsernetEntry[] = [];
  let netdev: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const heading = HEADING.exec(line)?.groups?.['netdev'];
    if (heading !== undefined) netdev = heading;
    const { protocol, state = '', host, guest } = ROW.exec(line)?.groups ?? {};
    if (protocol === undefined) continue;
    found.push({
      ...(netdev !== undefined && { netdev }),
      protocol: protocol === 'UDP' ? 'udp' : 'tcp',
      state,
      hostPort: Number(host),
      guestPort: Number(guest),
    });
  }
  return found;
}
