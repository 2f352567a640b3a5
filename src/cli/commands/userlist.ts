/** virtctl userlist */
import { guestReadCommand } from '#cli/verbs/guest-read.ts';

export const userlist = guestReadCommand({
  name: 'userlist',
  read: 'userlist',
  summary: 'Return full list of logged in users on the guest machine.',
  doing: 'listing users',
});
