import { DataSource } from 'typeorm';
import { readConfig } from '../config/config.js';
import { databaseOptions } from './database-options.js';
import { joinDatabase } from './open-database.js';

/** For the TypeORM command line, such as `npm run typeorm -- migration:show`. */
const database = await joinDatabase(readConfig().database);

export default new DataSource(databaseOptions(database.config));
