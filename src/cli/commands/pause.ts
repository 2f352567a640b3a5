/** virtctl pause */
import { definePauseCommand } from '#cli/verbs/pause-command.ts';

export const pause = definePauseCommand({ verb: 'pause', word: 'pause', gerund: 'pausing' }, 'Pause');
