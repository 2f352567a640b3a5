/** virtctl guestosinfo */
import { guestReadCommand } from '#cli/verbs/guest-read.ts';

export const guestosinfo = guestReadCommand({
  name: 'guestosinfo',
  read: 'guestosinfo',
  summary: 'Return guest agent info about operating system.',
  doing: 'getting guestosinfo',
});
