import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Sends a body of a given size, and prints the status and the body of the response: Post URL TOKEN BYTES. */
class Post {
  public static void main(String[] args) throws Exception {
    var request =
        HttpRequest.newBuilder(URI.create(args[0]))
            .header("Authorization", "Bearer " + args[1])
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString("x".repeat(Integer.parseInt(args[2]))))
            .build();
    var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    var response = client.send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(response.statusCode() + response.body());
  }
}
