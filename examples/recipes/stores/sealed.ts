import { sealed } from 'once-per-key/sealed'
import { store as redis } from './redis.js'

/** Base64 of 32 random bytes each, with commas between them: the first one seals, all of them open. */
const keys = (process.env.SEALING_KEYS ?? '').split(',')

export const store = sealed(redis, { keys })
