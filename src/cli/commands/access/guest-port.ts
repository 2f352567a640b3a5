/** Connects to a port of a guest through the API. */
import { PLAIN_STREAM_PROTOCOL } from '#api/names.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import type { ForwardedPort } from '#cli/commands/access/ports.ts';
import type { GuestTarget } from '#cli/commands/access/target.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import type { WebSocketStream } from '#lib/websocket/websocket.ts';

export interface Guest extends GuestTarget {
  readonly namespace: string;
}

export function resolveGuest(api: ApiConnection, target: GuestTarget): Guest {
  return { ...target, namespace: target.namespace ?? api.namespace };
}

export function openGuestPort(
  api: ApiConnection,
  { kind, name, namespace }: Guest,
  { remote, protocol }: Pick<ForwardedPort, 'remote' | 'protocol'>,
): Promise<WebSocketStream> {
  const resource = kind === 'vm' ? 'virtualmachines' : 'virtualmachineinstances';
  return api.openWebSocket(verbPath(resource, namespace, name, `portforward/${remote}/${protocol}`), [
    PLAIN_STREAM_PROTOCOL,
  ]);
}
