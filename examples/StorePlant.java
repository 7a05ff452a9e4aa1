import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.http.*;
class StorePlant {
  public static void main(String[] args) throws Exception {
    var json = new ObjectMapper(); // A long is exact; a double would round the id.
    var body = json.writeValueAsBytes(java.util.Map.of("id", Long.parseLong(args[0]), "name", args[1], "tag", args[2]));
    var request = HttpRequest.newBuilder(java.net.URI.create(System.getenv("PLANT_STORE_URL") + "/plants"))
        .headers("Authorization", "Bearer " + System.getenv("PLANT_STORE_TOKEN"), "Content-Type", "application/json")
        .timeout(java.time.Duration.ofSeconds(10)).POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
    for (var attempt = 1; attempt <= 10; attempt++) { // After a time-out, the same plant again, never another id.
      var sent = HttpClient.newHttpClient().sendAsync(request, HttpResponse.BodyHandlers.ofString());
      var response = sent.handle((received, failure) -> received).join();
      if (response != null && response.statusCode() == 200) return;
      if (response != null && response.statusCode() != 429 && response.statusCode() != 503) throw new RuntimeException(
          json.readTree(response.body()).get("error").asInt() == 40006 ? "The id is taken." : response.body());
      Thread.sleep(1000 * (response == null ? 1 : response.headers().firstValueAsLong("Retry-After").orElse(1)));
    }
    throw new RuntimeException("The Plant Store does not respond.");
  }
}
