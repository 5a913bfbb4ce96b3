import { type RedisPlace, redisPlaceOf } from './redis-place.js'

/** What the environment says. */
export interface Settings {
  readonly port: number
  /** Absent: records and books live in this process. */
  readonly redis?: RedisPlace
  /** A demo setting: a short lease lets a crash be shown in seconds. Services leave it alone. */
  readonly leaseMs?: number
  /** A demo setting: webhooks that failed are tried again soon. */
  readonly firstPauseMs?: number
}

/** A value that cannot be used. Its message is one line, and shows no secret. */
export class SettingInvalid extends Error {}

/** An empty variable counts as absent. */
export function settingsOf(env: Readonly<Record<string, string | undefined>>): Settings {
  const { PORT, REDIS_URL, DEMO_LEASE_MS, DEMO_WEBHOOK_PAUSE_MS: pause } = env
  return {
    port: wholeNumber('PORT', PORT || '3000', 0, 65_535),
    ...(REDIS_URL && { redis: placeOf(REDIS_URL) }),
    ...(DEMO_LEASE_MS && { leaseMs: wholeNumber('DEMO_LEASE_MS', DEMO_LEASE_MS, 1_000, 60_000) }),
    ...(pause && { firstPauseMs: wholeNumber('DEMO_WEBHOOK_PAUSE_MS', pause, 1, 60_000) }),
  }
}

function wholeNumber(name: string, given: string, least: number, most: number): number {
  const number = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN
  if (number >= least && number <= most) return number
  throw new SettingInvalid(`${name} must be a whole number from ${least} to ${most}; seen: ${JSON.stringify(given)}.`)
}

function placeOf(url: string): RedisPlace {
  const place = redisPlaceOf(url)
  if (place !== null) return place
  // What was seen stays out of it: it may hold a password.
  throw new SettingInvalid('REDIS_URL must be like redis://localhost:6379 or rediss://user:password@host:6379/0.')
}
