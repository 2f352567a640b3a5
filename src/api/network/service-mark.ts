/**
 * The bit of the connection mark (ct mark) that says: this connection goes to a Service, and our rules have changed its
 * destination to an endpoint. The rules of Services set it with the first packet; rules that filter traffic to guests accept
 * new connections that have it. Only this bit is ours: rules test it with a mask and set it with "or".
 */
export const SERVICE_MARK = 0x2000;
