import { isPostgresUrl, POSTGRES_LIKE } from './postgres-url.js'
import { type RedisPlace, redisPlaceOf } from './redis-place.js'

/** What the environment says. */
export interface Settings {
  readonly port: number
  /** An address or a name of this machine: where it listens. */
  readonly host: string
  /** Absent: records and books live in this process. */
  readonly redis?: RedisPlace
  /** As `redis`, with records and effects that commit together. */
  readonly databaseUrl?: string
  /** The same in a file of SQLite. */
  readonly sqliteFile?: string
  /** A demo setting: a short lease lets a crash be shown in seconds. Services leave it alone. */
  readonly leaseMs?: number
  /** A demo setting: webhooks that failed are tried again soon. */
  readonly firstPauseMs?: number
  /** A demo setting: webhooks may go to this machine. */
  readonly mayReachLoopback?: boolean
}

/** A value that cannot be used. Its message is one line, and shows no secret. */
export class SettingInvalid extends Error {}

/** An empty variable counts as absent. */
export function settingsOf(env: Readonly<Record<string, string | undefined>>): Settings {
  const {
    PORT,
    HOST,
    REDIS_URL,
    DATABASE_URL,
    SQLITE_FILE,
    DEMO_LEASE_MS,
    DEMO_WEBHOOK_PAUSE_MS: pause,
    DEMO_WEBHOOK_LOOPBACK: loopback,
  } = env
  if ([REDIS_URL, DATABASE_URL, SQLITE_FILE].filter(Boolean).length > 1)
    throw new SettingInvalid('Set one of REDIS_URL, DATABASE_URL and SQLITE_FILE.')
  return {
    port: wholeNumber('PORT', PORT || '3000', 0, 65_535),
    // The API keys are in the README: by default nobody else can come.
    host: hostOf(HOST || '127.0.0.1'),
    ...(REDIS_URL && { redis: placeOf(REDIS_URL) }),
    ...(DATABASE_URL && { databaseUrl: databaseUrlOf(DATABASE_URL) }),
    ...(SQLITE_FILE && { sqliteFile: SQLITE_FILE }),
    ...(DEMO_LEASE_MS && { leaseMs: wholeNumber('DEMO_LEASE_MS', DEMO_LEASE_MS, 1_000, 60_000) }),
    ...(pause && { firstPauseMs: wholeNumber('DEMO_WEBHOOK_PAUSE_MS', pause, 1, 60_000) }),
    ...(loopback && { mayReachLoopback: flag('DEMO_WEBHOOK_LOOPBACK', loopback) }),
  }
}

function wholeNumber(name: string, given: string, least: number, most: number): number {
  const number = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN
  if (number >= least && number <= most) return number
  throw new SettingInvalid(`${name} must be an integer from ${least} to ${most}; seen: ${JSON.stringify(given)}.`)
}

function hostOf(given: string): string {
  if (/^[\w.:-]+$/.test(given)) return given
  throw new SettingInvalid(
    `HOST must be an address or a name of this machine, such as 127.0.0.1 or 0.0.0.0; seen: ${JSON.stringify(given)}.`,
  )
}

function flag(name: string, given: string): true {
  if (given === 'true') return true
  throw new SettingInvalid(`${name} must be true, or absent; seen: ${JSON.stringify(given)}.`)
}

function databaseUrlOf(given: string): string {
  if (isPostgresUrl(given)) return given
  // What was seen stays out of it: it may hold a password.
  throw new SettingInvalid(`DATABASE_URL must be like ${POSTGRES_LIKE}.`)
}

function placeOf(url: string): RedisPlace {
  const place = redisPlaceOf(url)
  if (place !== null) return place
  // What was seen stays out of it: it may hold a password.
  throw new SettingInvalid('REDIS_URL must be like redis://localhost:6379 or rediss://user:password@host:6379/0.')
}
