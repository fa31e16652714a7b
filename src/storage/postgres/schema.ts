/**
 * The schema in PostgreSQL: a table of records, and a function that is a commit (contract, 15.4 and 15.6).
 *
 * The function locks all keys that it checks, counts or writes, always in the same order, and then looks at them. At
 * READ COMMITTED each of its statements sees what was committed before that statement began, so what it sees after
 * locking stays true until it ends. Nothing is ever aborted and repeated, as SERIALIZABLE transactions are, and absence
 * can be checked, which no lock of a row can do.
 *
 * Replicas of two versions may run at once while one after the other is upgraded. So a function never changes what it
 * takes or does for a program that is still supported: a new one gets a new name.
 */

/** The schema that this program makes, and the oldest program that may use it. */
export const schemaVersion = 1
export const oldestProgram = 1

/** The codes of our functions' refusals; five characters each, in a class that PostgreSQL leaves to its users. */
export const refusals = {
  /** The database could lose what it acknowledges. */
  notDurable: 'PN001',
  /** No synchronous standby is configured, and `--store-sync required` was given. */
  noStandby: 'PN002',
  /** The schema was upgraded beyond this program. */
  tooOld: 'PN003',
} as const

/** `checksum` is NULL where the database has counted. No value is compressed: they are small, or read as a whole. */
const tables = `
CREATE TABLE IF NOT EXISTS postern_records (
  key bytea PRIMARY KEY,
  value bytea NOT NULL,
  checksum bigint
);
CREATE TABLE IF NOT EXISTS postern_commits (
  id bytea PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS postern_replicas (
  name text PRIMARY KEY,
  run text NOT NULL,
  base_url text NOT NULL,
  addresses text NOT NULL,
  program text NOT NULL,
  beat timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS postern_instance (
  version int NOT NULL,
  oldest int NOT NULL,
  secret_check bytea
);
INSERT INTO postern_instance (version, oldest)
  SELECT ${schemaVersion}, ${oldestProgram} WHERE NOT EXISTS (SELECT FROM postern_instance);
UPDATE postern_instance SET version = ${schemaVersion}, oldest = greatest(oldest, ${oldestProgram})
  WHERE version < ${schemaVersion};
`

/** Refuses a commit whose acknowledgement would mean less than it says. */
const createRequireDurable = `
CREATE OR REPLACE FUNCTION postern_require_durable(program int, wants_standby boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'postern commits at READ COMMITTED only';
  END IF;
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    RAISE EXCEPTION 'synchronous_commit is %: a commit would not be durable', current_setting('synchronous_commit')
      USING ERRCODE = '${refusals.notDurable}';
  END IF;
  IF wants_standby AND current_setting('synchronous_standby_names') = '' THEN
    RAISE EXCEPTION 'no synchronous standby is configured' USING ERRCODE = '${refusals.noStandby}';
  END IF;
  IF program < (SELECT oldest FROM postern_instance) THEN
    RAISE EXCEPTION 'the schema was upgraded: this program is too old for it' USING ERRCODE = '${refusals.tooOld}';
  END IF;
END $$`

/**
 * Locks: one that a load holds against all commits, and one for each key, numbered by a hash. A commit that is
 * repeated, because its answer was lost, waits for its first self at these locks, and then finds its own id.
 */
const createCommit = `
CREATE OR REPLACE FUNCTION postern_commit(
  commit_id bytea, program int, wants_standby boolean,
  check_keys bytea[], check_values bytea[],
  count_keys bytea[], count_adds text[], count_mosts text[],
  delete_keys bytea[], put_keys bytea[], put_values bytea[], put_checksums bigint[]
) RETURNS TABLE (kind text, at bytea) LANGUAGE plpgsql AS $$
DECLARE
  lock_number bigint;
  is_held_up boolean := false;
  place int;
  stored bytea;
  befores numeric[];
  afters numeric[];
  adds numeric[];
  mosts numeric[];
  counted bytea[] := '{}';
BEGIN
  PERFORM postern_require_durable(program, wants_standby);
  LOCK TABLE postern_records IN ROW EXCLUSIVE MODE;
  FOR lock_number IN
    SELECT DISTINCT ('x' || left(md5(one), 16))::bit(64)::bigint AS number
    FROM unnest(check_keys || count_keys || delete_keys || put_keys) AS one ORDER BY number
  LOOP
    PERFORM pg_advisory_xact_lock(lock_number);
  END LOOP;

  IF EXISTS (SELECT FROM postern_commits WHERE id = commit_id) THEN
    kind := 'found'; RETURN NEXT;
    RETURN;
  END IF;
  FOR place IN 1 .. cardinality(check_keys) LOOP
    SELECT value INTO stored FROM postern_records WHERE key = check_keys[place];
    IF stored IS DISTINCT FROM check_values[place] THEN
      is_held_up := true;
      kind := 'conflict'; at := check_keys[place]; RETURN NEXT;
    END IF;
  END LOOP;
  IF is_held_up THEN RETURN; END IF;

  FOR place IN 1 .. cardinality(count_keys) LOOP
    SELECT value INTO stored FROM postern_records WHERE key = count_keys[place];
    befores := coalesce(string_to_array(convert_from(stored, 'SQL_ASCII'), ' ')::numeric[], '{}');
    adds := string_to_array(count_adds[place], ' ')::numeric[];
    mosts := string_to_array(nullif(count_mosts[place], ''), ' ')::numeric[];
    afters := ARRAY(SELECT coalesce(befores[i], 0) + adds[i] FROM generate_subscripts(adds, 1) AS i ORDER BY i);
    IF EXISTS (SELECT FROM generate_subscripts(adds, 1) AS i WHERE adds[i] > 0 AND afters[i] > mosts[i]) THEN
      is_held_up := true;
      kind := 'full'; at := count_keys[place]; RETURN NEXT;
    END IF;
    counted := counted || CASE WHEN 0 = ALL (afters) THEN ''::bytea
      ELSE convert_to(array_to_string(afters, ' '), 'SQL_ASCII') END;
  END LOOP;
  IF is_held_up THEN RETURN; END IF;

  INSERT INTO postern_commits (id) VALUES (commit_id);
  DELETE FROM postern_records WHERE key = ANY (delete_keys);
  FOR place IN 1 .. cardinality(count_keys) LOOP
    IF counted[place] = ''::bytea THEN
      DELETE FROM postern_records WHERE key = count_keys[place];
    ELSE
      INSERT INTO postern_records VALUES (count_keys[place], counted[place], NULL)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = NULL;
    END IF;
  END LOOP;
  INSERT INTO postern_records SELECT * FROM unnest(put_keys, put_values, put_checksums)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum;
END $$`

/**
 * A sign of life, written so that it must be acknowledged by the standbys too. Of a replica, or of a command, which has
 * no name and leaves an id behind. Ids are of use for a minute.
 */
const createHeartbeatTimer = `
CREATE OR REPLACE FUNCTION postern_beat(
  program int, replica text, its_run text, its_base_url text, its_addresses text, its_program text
) RETURNS TABLE (is_replicated boolean, others text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM postern_require_durable(program, false);
  IF replica IS NULL THEN
    INSERT INTO postern_commits (id) VALUES (decode(md5(random()::text || clock_timestamp()::text), 'hex'));
  ELSE
    INSERT INTO postern_replicas VALUES (replica, its_run, its_base_url, its_addresses, its_program, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET run = excluded.run, base_url = excluded.base_url,
      addresses = excluded.addresses, program = excluded.program, beat = excluded.beat;
    DELETE FROM postern_replicas AS gone WHERE gone.beat < clock_timestamp() - interval '1 day';
  END IF;
  DELETE FROM postern_commits WHERE postern_commits.at < clock_timestamp() - interval '1 minute';
  is_replicated := current_setting('synchronous_standby_names') <> '';
  others := (SELECT string_agg(one.addresses, ',') FROM postern_replicas AS one
    WHERE one.name <> replica AND one.beat > clock_timestamp() - interval '1 minute');
  RETURN NEXT;
END $$`

/**
 * How our statements are planned: always by the index, and once, as all of them are look-ups of keys. A
 * scan that cannot be avoided, of a table of one row, would count as so dear that it is compiled first (jit, 10 ms). Of
 * the role, and not of a connection, so that it holds behind a pooler too. Commits that wait for a load end in seconds.
 */
const settings = `
DO $$
DECLARE
  setting text;
BEGIN
  FOREACH setting IN ARRAY ARRAY[
    'plan_cache_mode = force_generic_plan', 'enable_seqscan = off', 'enable_bitmapscan = off', 'jit = off',
    'array_nulls = on',
    'lock_timeout = ''5s'''
  ] LOOP
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET %s', current_database(), setting);
  END LOOP;
END $$`

/** The number of the advisory lock under which a schema is made. Any constant will do. */
const makingLock = 7_075_831_902_417

/** The statements that make the schema, or change nothing where it is there; to be run in one transaction. */
export const schema: readonly string[] = [
  `SELECT pg_advisory_xact_lock(${makingLock})`,
  ...tables.split(/;\n/).filter((statement) => statement.trim() !== ''),
  createRequireDurable,
  createCommit,
  createHeartbeatTimer,
  settings,
]
